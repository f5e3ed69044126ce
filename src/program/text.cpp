#include "program/text.h"

#include "base/error.h"

#include <algorithm>
#include <optional>

namespace tenon {
namespace {

std::string listed(const std::vector<Extent>& extents) {
  std::string text;
  for (const Extent& extent : extents) text += concat(text.empty() ? "" : ", ", to_string(extent));
  return concat("[", text, "]");
}

std::string listed(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (const std::uint32_t id : ids) text += concat(text.empty() ? "%" : ", %", id);
  return text;
}

std::string place_of(const Program::Buffer& buffer) {
  switch (buffer.place) {
    case Program::Place::Input:
      return concat("input ", buffer.offset);
    case Program::Place::Output:
      return concat("output ", buffer.offset);
    case Program::Place::Constant:
      return concat("constant at ", buffer.offset, buffer.is_looked_up ? " looked up" : "",
                    buffer.is_weight ? " weight" : "");
    case Program::Place::Arena:
      return concat("arena at ", buffer.offset, " in steps ", buffer.first_step, " to ",
                    buffer.last_step);
  }
  return "nowhere";
}

// Nothing where symbols decide.
std::optional<std::uint64_t> bytes_of(const Program::Buffer& buffer) {
  std::uint64_t bytes = buffer.element_bytes;
  for (const Extent& dim : buffer.dims) {
    if (!dim.is_number()) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(dim.number());
  }
  return bytes;
}

}  // namespace

std::string to_string(const Program& program) {
  std::string text = concat("program '", program.name, "' for ", program.target, " {\n");
  for (std::size_t k = 0; k < program.symbols.size(); ++k) {
    const Program::Symbol& symbol = program.symbols[k];
    text += concat("  $", k, " = ", symbol.name, " in ", symbol.lo, "..", symbol.hi, ", axis ",
                   symbol.axis, " of input ", symbol.input, "\n");
  }
  for (std::size_t k = 0; k < program.buffers.size(); ++k) {
    const Program::Buffer& buffer = program.buffers[k];
    text += concat("  %", k, " '", buffer.name, "': ", buffer.dtype, listed(buffer.dims), " ",
                   place_of(buffer), "\n");
  }
  for (const Program::Kernel& kernel : program.kernels) {
    text += concat("  kernel ", kernel.symbol, " '", kernel.name, "' scratch ",
                   to_string(kernel.scratch_bytes), "\n");
  }
  for (const Program::Step& step : program.steps) {
    text += concat("  step '", step.name, "': ", program.kernels[step.kernel].symbol, "(",
                   listed(step.buffers), ")", listed(step.extents), " of ", to_string(step.work),
                   " items");
    if (!step.candidate.empty()) text += concat(" by ", step.candidate);
    for (const Program::Guard& guard : step.when)
      text += concat(" when $", guard.symbol, " in ", guard.lo, "..", guard.hi);
    text += "\n";
  }
  text +=
      concat("  inputs ", listed(program.inputs), "\n  outputs ", listed(program.outputs), "\n");
  if (program.is_arena_planned) text += concat("  arena of ", program.arena_bytes, " bytes\n");
  text += concat("  constants of ", program.constant_bytes, " bytes\n}\n");
  if (program.is_composed()) text += to_string(program.routine);
  for (std::size_t k = 0; k < program.parts.size(); ++k)
    text += concat("part ", k, " ", to_string(program.parts[k]));
  return text;
}

std::string plan_text(const Program& program) {
  if (program.is_composed()) {
    std::string parts;
    for (std::size_t k = 0; k < program.parts.size(); ++k)
      parts += concat("part ", k, " ", plan_text(program.parts[k]));
    return parts;
  }
  if (!program.is_arena_planned) return "plan: when shapes are known\n";
  std::vector<const Program::Buffer*> placed;
  for (const Program::Buffer& buffer : program.buffers) {
    const bool lies_there =
        buffer.place == Program::Place::Arena && bytes_of(buffer).value_or(0) > 0;
    if (lies_there) placed.push_back(&buffer);
  }
  std::ranges::stable_sort(placed, {}, [](const Program::Buffer* buffer) {
    return std::make_pair(buffer->first_step, buffer->offset);
  });
  std::string text = concat("plan of ", program.arena_bytes, " bytes {\n");
  for (const Program::Buffer* buffer : placed) {
    text += concat("  steps ", buffer->first_step, " to ", buffer->last_step, ": bytes ",
                   buffer->offset, " to ", buffer->offset + *bytes_of(*buffer), " '", buffer->name,
                   "'\n");
  }
  return text + "}\n";
}

}  // namespace tenon
