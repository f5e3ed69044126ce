#include "embed/loaded_program.h"

#include "base/error.h"
#include "base/text.h"
#include "embed/json_text.h"
#include "embed/tensor.h"
#include "program/totals.h"

#include <algorithm>
#include <cstring>

namespace tenon::embed {
namespace {

// Formats an extent in infix notation with symbol names.
std::string text_of(const Extent& extent, const Program& program) {
  struct Part {
    std::string text;
    bool is_sum = false;
  };
  std::vector<Part> stack;
  for (const Extent::Instruction& step : extent.steps()) {
    if (step.op == Extent::Op::Number) {
      stack.push_back({std::to_string(step.number)});
      continue;
    }
    if (step.op == Extent::Op::Symbol) {
      stack.push_back({program.symbols[static_cast<std::size_t>(step.number)].name});
      continue;
    }
    const Part b = std::move(stack.back());
    stack.pop_back();
    Part& a = stack.back();
    const auto factor = [](const Part& part) {
      return part.is_sum ? concat("(", part.text, ")") : part.text;
    };
    switch (step.op) {
      case Extent::Op::Add:
        a = {concat(a.text, " + ", b.text), true};
        break;
      case Extent::Op::Multiply:
        a = {concat(factor(a), "*", factor(b))};
        break;
      case Extent::Op::FloorDivide:
        a = {concat("floor(", factor(a), "/", factor(b), ")")};
        break;
      case Extent::Op::Minimum:
        a = {concat("min(", a.text, ", ", b.text, ")")};
        break;
      default:
        a = {concat("max(", a.text, ", ", b.text, ")")};
        break;
    }
  }
  return stack.back().text;
}

ProgramPort port_of(const Program::Buffer& buffer, const Program& program) {
  ProgramPort port;
  port.name = buffer.name;
  port.dtype = dtype_of(buffer.dtype);
  port.has_rank = port.dtype != TENON_NO_DTYPE;
  if (!port.has_rank) {  // e.g. "seq(f32[2])", "?"
    port.type = buffer.dtype;
    return port;
  }
  std::vector<std::string> dims;
  for (const Extent& dim : buffer.dims) {
    port.shape.push_back(dim.is_number() ? dim.number() : -1);
    dims.push_back(text_of(dim, program));
  }
  port.type = concat(buffer.dtype, "[", join(dims, ", "), "]");
  return port;
}

std::string to_json(const std::vector<ProgramPort>& ports) {
  std::vector<std::string> items;
  for (const ProgramPort& port : ports)
    items.push_back(JsonObject().add("name", port.name).add("type", port.type).text());
  return json_list(items);
}

}  // namespace

LoadedProgram::LoadedProgram(std::shared_ptr<const Executable> model) : model_(std::move(model)) {
  const Program& program = this->program();
  const auto add = [&](std::vector<ProgramPort>& ports, std::uint32_t id, std::size_t position) {
    ports.push_back(port_of(program.buffers[id], program));
    ports.back().position = position;
  };
  for (std::size_t k = 0; k < program.inputs.size(); ++k) {
    if (std::ranges::find(program.states, k, &Program::State::input) == program.states.end())
      add(inputs_, program.inputs[k], k);
  }
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    if (std::ranges::find(program.states, k, &Program::State::output) == program.states.end())
      add(outputs_, program.outputs[k], k);
  }
  for (std::size_t k = 0; k < program.states.size(); ++k)
    add(states_, program.inputs[program.states[k].input], k);
  for (std::uint32_t id = 0; id < program.buffers.size(); ++id) {
    if (!program.buffers[id].is_weight) continue;
    weights_.push_back(port_of(program.buffers[id], program));
    weight_buffers_.push_back(id);
  }
  const ProgramTotals totals = totals_of(program);
  JsonObject symbols;
  for (const Program::Symbol& symbol : program.symbols)
    symbols.add_json(symbol.name, concat("[", symbol.lo, ",", symbol.hi, "]"));
  description_ = JsonObject()
                     .add("name", program.name)
                     .add("target", program.target)
                     .add_json("inputs", to_json(inputs_))
                     .add_json("outputs", to_json(outputs_))
                     .add_json("weights", to_json(weights_))
                     .add_json("states", to_json(states_))
                     .add_json("symbols", symbols.text())
                     .add("steps", totals.steps)
                     .add("kernels", totals.kernels)
                     .add("operator_steps", totals.operator_steps)
                     .add("code_bytes", totals.code_bytes)
                     .add("constant_bytes", totals.constant_bytes)
                     .add("arena_bytes", totals.arena_bytes)
                     .add("flops", totals.flops)
                     .text();
}

const std::vector<ProgramPort>& LoadedProgram::ports(std::int32_t kind) const {
  switch (kind) {
    case TENON_INPUT:
      return inputs_;
    case TENON_OUTPUT:
      return outputs_;
    case TENON_WEIGHT:
      return weights_;
    case TENON_STATE:
      return states_;
  }
  throw Error("no kind of port has this number", ErrorKind::Usage).got(kind);
}

void LoadedProgram::set_weight(const std::string& name, const tenon_tensor& elements) {
  const auto found = std::ranges::find(weights_, name, &ProgramPort::name);
  if (found == weights_.end()) {
    std::vector<std::string> known;
    for (const ProgramPort& weight : weights_) known.push_back(weight.name);
    throw Error(concat("the program has no weight '", name, "' to swap"), ErrorKind::Usage)
        .hint(known.empty() ? std::string("compile it with swappable_weights (--swappable-weights)")
                            : suggest_name(name, known));
  }
  const std::string what = concat("weight '", name, "'");
  require_usable(elements, what);
  if (elements.dtype != found->dtype ||
      !std::ranges::equal(shape_of(elements, what), found->shape)) {
    throw Error(concat(what, " does not fit"), ErrorKind::Usage)
        .expected(found->type)
        .got(type_text(elements));
  }
  const std::uint64_t bytes = byte_count(elements, what);
  // Same alignment as constants in a program, padded to whole cache lines for kernels that read
  // past the end.
  const std::uint64_t room = (bytes + 63) / 64 * 64 + 64;
  std::shared_ptr<std::byte> copy(
      static_cast<std::byte*>(::operator new (room, std::align_val_t{64})),
      [](std::byte* data) { ::operator delete (data, std::align_val_t{64}); });
  std::memset(copy.get() + bytes, 0, room - bytes);
  if (bytes > 0) std::memcpy(copy.get(), elements.data, bytes);
  const std::uint32_t buffer = weight_buffers_[static_cast<std::size_t>(found - weights_.begin())];
  const std::lock_guard lock(mutex_);
  std::erase_if(replacements_, [&](const auto& entry) { return entry.first == buffer; });
  replacements_.emplace_back(buffer, std::move(copy));
}

Replacements LoadedProgram::replacements() const {
  const std::lock_guard lock(mutex_);
  return replacements_;
}

Programs& programs() {
  static Programs table("program");
  return table;
}
Contexts& contexts() {
  static Contexts table("context");
  return table;
}

}  // namespace tenon::embed
