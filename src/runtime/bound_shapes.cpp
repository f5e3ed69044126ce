#include "runtime/bound_shapes.h"

#include "base/error.h"
#include "base/text.h"
#include "program/arena.h"

#include <algorithm>
#include <string>

namespace tenon::inline runtime {

void BoundShapes::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  if (input_shapes.size() != program_.inputs.size()) {
    throw Error("the model takes another number of inputs", ErrorKind::Usage)
        .expected(program_.inputs.size())
        .got(input_shapes.size());
  }
  read_symbols(input_shapes);
  shapes.assign(program_.buffers.size(), {});
  has_shape.assign(program_.buffers.size(), false);
  check_inputs(input_shapes);
  // Checks come before any use of extents: invalid extents have no shape.
  check_symbols();
  compute_shapes();
  output_shapes.clear();
  for (const std::uint32_t output : program_.outputs) output_shapes.push_back(shapes[output]);
  place();
}

// Only buffers that this run certainly uses need valid extents: those of a branch that is not
// taken, of a loop without iterations and of skipped steps may have none. Steps that use such a
// buffer after all compute its shape again.
void BoundShapes::compute_shapes() {
  const Program& p = program_;
  std::vector<bool> is_needed(p.buffers.size(), false);
  for (std::uint32_t k = 0; k < p.steps.size(); k = end_of(p, k)) {
    const Program::Step& step = p.steps[k];
    const bool has_body =
        step.kind == Program::StepKind::Branch || step.kind == Program::StepKind::Loop;
    if (has_body || !runs(step)) continue;
    for (const std::uint32_t id : step.buffers) is_needed[id] = is_needed[root_of(p, id)] = true;
  }
  for (const std::uint32_t id : p.outputs) is_needed[id] = is_needed[root_of(p, id)] = true;
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    if (std::ranges::all_of(p.buffers[k].dims, [&](const Extent& dim) { return is_resolved(dim); }))
      compute_shape(k, is_needed[k]);
  }
}

void BoundShapes::compute_shape(std::size_t buffer, bool is_needed) {
  std::vector<std::int64_t>& shape = shapes[buffer];
  shape.clear();
  has_shape[buffer] = true;
  try {
    for (std::size_t axis = 0; axis < program_.buffers[buffer].dims.size(); ++axis)
      shape.push_back(extent_of(buffer, axis));
    bytes_of(buffer);
  } catch (const Error&) {
    shape.clear();
    has_shape[buffer] = false;
    if (is_needed) throw;
  }
}

std::int64_t BoundShapes::extent_of(std::size_t buffer, std::size_t axis) const {
  try {
    const std::int64_t extent = program_.buffers[buffer].dims[axis].value(symbols);
    if (extent < 0) throw Error("an extent is negative", ErrorKind::Usage).got(extent);
    return extent;
  } catch (Error& error) {
    throw error.at(place_of(buffer));
  }
}

std::int64_t BoundShapes::value_of(const Extent& extent, const Program::Step& step) const {
  try {
    return extent.value(symbols);
  } catch (Error& error) {
    throw error.at("node '", step.value, "'");
  }
}

// Names the first step that uses the buffer: the node that computes it, or that reads an input.
std::string BoundShapes::place_of(std::size_t buffer) const {
  const std::string own = concat("buffer '", program_.buffers[buffer].name, "'");
  const auto uses = [&](const Program::Step& step) {
    const bool is_leaf =
        step.kind == Program::StepKind::Kernel || step.kind == Program::StepKind::Host;
    return is_leaf && std::ranges::find(step.buffers, buffer) != step.buffers.end();
  };
  const auto found = std::ranges::find_if(program_.steps, uses);
  return found == program_.steps.end() ? own : concat("node '", found->value, "', ", own);
}

bool BoundShapes::is_resolved(const Extent& extent) const {
  return std::ranges::all_of(extent.steps(), [&](const Extent::Instruction& step) {
    return step.op != Extent::Op::Symbol || is_known[static_cast<std::size_t>(step.number)];
  });
}

void BoundShapes::set_symbol(std::uint32_t symbol, std::int64_t value) {
  const Program::Symbol& made = program_.symbols[symbol];
  if (value < made.lo || value > made.hi) {
    throw Error(concat("extent '", made.name, "' is out of range"))
        .at("'", program_.buffers[made.buffer].name, "', axis ", made.axis)
        .expected(made.lo, " to ", made.hi)
        .got(value);
  }
  symbols[symbol] = value;
  is_known[symbol] = true;
}

void BoundShapes::check_symbols(std::optional<std::uint32_t> step) const {
  for (const ShapeCheck& check : program_.checks) {
    const bool is_of_body = check.end != UINT32_MAX;
    if (is_of_body && (!step || *step < check.begin || *step >= check.end)) continue;
    if (is_resolved(check.a) && is_resolved(check.b)) require_check(check, symbols);
  }
}

bool BoundShapes::runs(const Program::Step& step) const {
  return std::ranges::all_of(step.when, [&](const Program::Guard& guard) {
    return symbols[guard.symbol] >= guard.lo && symbols[guard.symbol] <= guard.hi;
  });
}

std::vector<std::uint64_t> BoundShapes::all_bytes() const {
  std::vector<std::uint64_t> bytes;
  for (std::size_t k = 0; k < program_.buffers.size(); ++k) bytes.push_back(bytes_of(k));
  return bytes;
}

void BoundShapes::read_symbols(std::span<const std::vector<std::int64_t>> input_shapes) {
  const Program& p = program_;
  symbols.assign(p.symbols.size(), 0);
  is_known.assign(p.symbols.size(), false);
  for (std::size_t k = 0; k < p.symbols.size(); ++k) {
    const Program::Symbol& symbol = p.symbols[k];
    if (symbol.buffer == kNoBuffer || p.buffers[symbol.buffer].place != Program::BufferKind::Input)
      continue;
    const Program::Buffer& input = p.buffers[symbol.buffer];
    const auto& shape = input_shapes[input.offset];
    if (shape.size() != input.dims.size()) {
      throw Error(concat("input '", input.name, "' has the wrong rank"), ErrorKind::Usage)
          .expected(input.dims.size(), " axes")
          .got(shape.size());
    }
    const std::int64_t extent = shape[symbol.axis];
    if (extent < symbol.lo || extent > symbol.hi) {
      throw Error(concat("extent '", symbol.name, "' is out of range"), ErrorKind::Usage)
          .at("input '", input.name, "', axis ", symbol.axis)
          .expected(symbol.lo, " to ", symbol.hi)
          .got(extent);
    }
    symbols[k] = extent;
    is_known[k] = true;
  }
}

// Compares the input shapes with the program's; unknown extents accept any value.
void BoundShapes::check_inputs(std::span<const std::vector<std::int64_t>> input_shapes) {
  const Program& p = program_;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    const std::vector<Extent>& dims = p.buffers[p.inputs[k]].dims;
    std::vector<std::int64_t> expected;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_given = axis < input_shapes[k].size();
      const std::int64_t given = is_given ? input_shapes[k][axis] : 0;
      expected.push_back(is_resolved(dims[axis]) ? extent_of(p.inputs[k], axis) : given);
    }
    if (input_shapes[k] == expected) {
      shapes[p.inputs[k]] = std::move(expected);
      has_shape[p.inputs[k]] = true;
      continue;
    }
    const auto text = [](const std::vector<std::int64_t>& shape) {
      std::string list;
      for (std::int64_t extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
      return "[" + list + "]";
    };
    throw Error(concat("input '", p.buffers[p.inputs[k]].name, "' has the wrong shape"),
                ErrorKind::Usage)
        .expected(text(expected))
        .got(text(input_shapes[k]));
  }
}

std::uint64_t BoundShapes::bytes_of(std::size_t buffer) const {
  const auto& shape = shapes[buffer];
  if (!has_shape[buffer] || std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t bytes = program_.buffers[buffer].element_bytes;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > kMaxBytes) {
      throw Error("no memory holds a value of this shape", ErrorKind::OutOfMemory)
          .at(place_of(buffer))
          .expected("at most ", format_bytes(kMaxBytes));
    }
  }
  return bytes;
}

void BoundShapes::place() {
  const Program& p = program_;
  offsets.assign(p.buffers.size(), 0);
  planned_bytes = p.arena_bytes;
  if (p.is_arena_planned) {
    for (std::size_t k = 0; k < p.buffers.size(); ++k) offsets[k] = p.buffers[k].offset;
  } else {
    std::vector<ArenaRequest> requests;
    std::vector<std::size_t> requesters;
    // Buffers that only skipped steps use need no memory.
    std::vector<bool> is_used(p.buffers.size(), false);
    for (const Program::Step& step : p.steps) {
      if (!runs(step)) continue;
      for (const std::uint32_t id : step.buffers) is_used[root_of(p, id)] = true;
    }
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      if (p.buffers[k].place != Program::BufferKind::Arena) continue;
      requests.push_back(
          {is_used[k] ? bytes_of(k) : 0, p.buffers[k].first_step, p.buffers[k].last_step});
      requesters.push_back(k);
    }
    const ArenaPlan plan = plan_arena(requests);
    for (std::size_t k = 0; k < requesters.size(); ++k) offsets[requesters[k]] = plan.offsets[k];
    planned_bytes = plan.bytes;
  }
}

}  // namespace tenon::inline runtime
