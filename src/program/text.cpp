#include "program/text.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <optional>

namespace tenon::inline program {
namespace {

std::string listed(const std::vector<Extent>& extents) {
  std::string text;
  for (const Extent& extent : extents) text += concat(text.empty() ? "" : ", ", to_string(extent));
  return concat("[", text, "]");
}

std::string named(std::uint32_t id) { return id == kNoBuffer ? "_" : concat("%", id); }

std::string listed(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (const std::uint32_t id : ids) text += concat(text.empty() ? "" : ", ", named(id));
  return concat("(", text, ")");
}

std::string listed(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += concat(list.empty() ? "" : ", ", quote(text));
  return concat("[", list, "]");
}

std::string listed(const std::vector<std::uint64_t>& numbers) {
  std::string list;
  for (const std::uint64_t number : numbers) list += concat(list.empty() ? "" : ", ", number);
  return concat("[", list, "]");
}

std::string place_of(const Program::Buffer& buffer) {
  const std::string steps = concat(" in steps ", buffer.first_step, " to ", buffer.last_step);
  switch (buffer.place) {
    case Program::BufferKind::Input:
      return concat("input ", buffer.offset);
    case Program::BufferKind::Output:
      return concat("output ", buffer.offset);
    case Program::BufferKind::Constant:
      return concat("constant at ", buffer.offset, buffer.is_looked_up ? " looked_up" : "",
                    buffer.is_weight ? " weight" : "");
    case Program::BufferKind::Arena:
      return concat("arena at ", buffer.offset, steps);
    case Program::BufferKind::Slot:
      return concat("slot", steps);
    case Program::BufferKind::View:
      return concat("view of %", buffer.offset);
  }
  return "nowhere";
}

std::string attribute_text(const ProgramAttribute& attribute) {
  static constexpr std::string_view kKinds[] = {"bool",     "integer",  "real",  "text",
                                                "element",  "integers", "reals", "texts",
                                                "constant", "type"};
  std::string text =
      concat(quote(attribute.name), " = ", kKinds[static_cast<std::size_t>(attribute.kind)], " ",
             listed(attribute.integers), " [");
  for (std::size_t k = 0; k < attribute.reals.size(); ++k) {
    text += concat(k == 0 ? "" : ", ", format_real(attribute.reals[k]));
  }
  text += concat("] ", listed(attribute.texts), " ");
  const auto* bytes = reinterpret_cast<const char*>(attribute.bytes.data());
  return text + quote({bytes, attribute.bytes.size()});
}

std::string host_text(const HostOperator& made) {
  std::string attributes;
  for (const ProgramAttribute& attribute : made.attributes) {
    attributes += concat(attributes.empty() ? "" : ", ", attribute_text(attribute));
  }
  return concat("host ", quote(made.op), " {", attributes, "} ", listed(made.operands), " to ",
                listed(made.results), " layouts ", listed(made.layouts), " at ", quote(made.where));
}

std::string branch_text(const BranchStep& made) {
  std::string text = concat("branch on ", named(made.condition), " bodies to ", made.then_end, ", ",
                            made.else_end, " {");
  for (const BranchStep::Result& each : made.results) {
    text +=
        concat(" result ", named(each.result), " of ", named(each.first), ", ", named(each.second));
  }
  return text + " }";
}

std::string loop_text(const LoopStep& made) {
  std::string text =
      concat("loop body to ", made.end, " trips ", named(made.trip_count), " while ",
             named(made.condition), " counter ", named(made.counter), ", ", named(made.goes_on),
             " next ", named(made.next_condition), " runs ", format_real(made.run_count), " {");
  const auto flag = [&](bool is, std::string_view word) {
    text += is ? concat(" ", word) : std::string();
  };
  for (const auto& each : made.carried) {
    text += concat(" carry ", named(each.initial), " as ", named(each.in), " from ",
                   named(each.out), " to ", named(each.result), ", ", named(each.spare));
    flag(each.is_direct, "direct");
  }
  for (const auto& each : made.scanned) {
    text += concat(" scan ", named(each.source), " as ", named(each.in), " axis ", each.axis);
    flag(each.is_reversed, "reversed");
    flag(each.is_sequence, "sequence");
  }
  for (const auto& each : made.stacked) {
    text += concat(" stack ", named(each.out), " to ", named(each.result), " axis ", each.axis);
    flag(each.is_reversed, "reversed");
    flag(each.is_sequence, "sequence");
    flag(each.is_direct, "direct");
  }
  return text + " }";
}

std::string step_text(const Program& program, const Program::Step& step) {
  switch (step.kind) {
    case Program::StepKind::Host:
      return host_text(program.operators[step.detail]);
    case Program::StepKind::Branch:
      return branch_text(program.branches[step.detail]);
    case Program::StepKind::Loop:
      return loop_text(program.loops[step.detail]);
    case Program::StepKind::Kernel:
      break;
  }
  std::string text =
      concat("kernel ", step.kernel, " ", listed(step.buffers), " extents ", listed(step.extents),
             " items ", to_string(step.work), " by ", quote(step.candidate));
  for (const Program::Guard& guard : step.when) {
    text += concat(" when $", guard.symbol, " from ", guard.lo, " to ", guard.hi);
  }
  return concat(text, " flops ", format_real(step.flops), " bytes ", format_real(step.bytes));
}

// Returns nullopt if the size is symbolic.
std::optional<std::uint64_t> bytes_of(const Program::Buffer& buffer) {
  std::uint64_t bytes = buffer.element_bytes;
  for (const Extent& dim : buffer.dims) {
    if (!dim.is_number()) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(dim.number());
  }
  return bytes;
}

}  // namespace

std::string to_string(const Program::State& state) {
  const std::string initial = state.starts_with_zeros      ? " starts with zeros"
                              : state.initial != kNoBuffer ? concat(" starts with %", state.initial)
                                                           : "";
  return concat("state input ", state.input, " output ", state.output, initial,
                state.may_overwrite ? " in_place" : "");
}

std::string to_string(const Program& program) {
  std::string text =
      concat("program ", quote(program.name), " for ", quote(program.target), " {\n");
  for (std::size_t k = 0; k < program.symbols.size(); ++k) {
    const Program::Symbol& symbol = program.symbols[k];
    text += concat("  symbol $", k, " ", quote(symbol.name), " from ", symbol.lo, " to ", symbol.hi,
                   " axis ", symbol.axis, " of ", named(symbol.buffer), "\n");
  }
  static constexpr std::string_view kChecks[] = {"equal", "at_most", "one_or", "broadcast"};
  for (const ShapeCheck& check : program.checks) {
    text +=
        concat("  check ", kChecks[static_cast<std::size_t>(check.kind)], " ", to_string(check.a),
               ", ", to_string(check.b), " ", listed({check.op, check.where, check.rule}));
    if (check.end != UINT32_MAX) text += concat(" in steps ", check.begin, " to ", check.end);
    text += "\n";
  }
  for (std::size_t k = 0; k < program.buffers.size(); ++k) {
    const Program::Buffer& buffer = program.buffers[k];
    text += concat("  %", k, " ", quote(buffer.name), " ", quote(buffer.dtype), " of ",
                   buffer.element_bytes, " ", listed(buffer.dims), " ", place_of(buffer), "\n");
  }
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const Program::Kernel& kernel = program.kernels[k];
    text += concat("  kernel ", k, " ", quote(kernel.name), " ", quote(kernel.symbol), " scratch ",
                   to_string(kernel.scratch_bytes), " threads ", kernel.threads, " library ",
                   quote(kernel.library), " checks ", listed(kernel.checks), " shared ",
                   kernel.shared_bytes, " cluster ", kernel.cluster);
    for (const Program::TensorMap& map : kernel.maps) {
      text += concat(" map ", map.buffer, " rows ", to_string(map.rows), " extents ",
                     listed(map.extents), " pitches ", listed(map.pitches), " box ",
                     listed(map.box), " steps ", listed(map.steps), " before ", listed(map.before),
                     " places ", listed(map.places));
    }
    text += "\n";
  }
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const Program::Step& step = program.steps[k];
    text += concat("  step ", k, " ", quote(step.name), " of ", quote(step.value), ": ",
                   step_text(program, step), "\n");
  }
  text +=
      concat("  inputs ", listed(program.inputs), "\n  outputs ", listed(program.outputs), "\n");
  for (const Program::State& state : program.states) text += concat("  ", to_string(state), "\n");
  text += concat("  arena ", program.arena_bytes, program.is_arena_planned ? " planned" : "", "\n");
  return text + concat("  constants ", program.constant_bytes, "\n}\n");
}

ArenaText arena_text(const Program& program) {
  ArenaText plan;
  if (!program.is_arena_planned) return plan;
  plan.bytes = program.arena_bytes;
  for (const Program::Buffer& buffer : program.buffers) {
    const std::uint64_t bytes = bytes_of(buffer).value_or(0);
    if (buffer.place != Program::BufferKind::Arena || bytes == 0) continue;
    plan.lines.push_back(
        {buffer.first_step, buffer.last_step, buffer.offset, buffer.offset + bytes, buffer.name});
  }
  std::ranges::stable_sort(plan.lines, {}, [](const ArenaText::Line& line) {
    return std::make_pair(line.first_step, line.begin);
  });
  return plan;
}

std::string to_string(const ArenaText& plan) {
  if (!plan.bytes) return "plan: when shapes are known\n";
  std::string text = concat("plan of ", *plan.bytes, " bytes {\n");
  for (const ArenaText::Line& line : plan.lines) {
    text += concat("  steps ", line.first_step, " to ", line.last_step, ": bytes ", line.begin,
                   " to ", line.end, " ", quote(line.name), "\n");
  }
  return text + "}\n";
}

}  // namespace tenon::inline program
