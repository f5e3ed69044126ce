#include "runtime/bound_shapes.h"

#include "base/error.h"
#include "base/text.h"
#include "program/arena.h"

#include <algorithm>
#include <string>

namespace tenon {

void BoundShapes::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  if (input_shapes.size() != program_.inputs.size()) {
    throw Error("the model takes another number of inputs", ErrorKind::Usage)
        .expected(program_.inputs.size())
        .got(input_shapes.size());
  }
  read_symbols(input_shapes);
  shapes.assign(program_.buffers.size(), {});
  const auto compute_shape = [&](std::size_t buffer) {
    shapes[buffer].clear();
    for (const Extent& dim : program_.buffers[buffer].dims) {
      shapes[buffer].push_back(dim.value(symbols));
    }
  };
  for (const std::uint32_t input : program_.inputs) compute_shape(input);
  check_inputs(input_shapes);
  // Before anything is made of extents: what does not fit has no shape.
  require_checks(program_.checks, symbols);
  for (std::size_t k = 0; k < program_.buffers.size(); ++k) compute_shape(k);
  output_shapes.clear();
  for (const std::uint32_t output : program_.outputs) output_shapes.push_back(shapes[output]);
  place();
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
  symbols.clear();
  for (const Program::Symbol& symbol : p.symbols) {
    const Program::Buffer& input = p.buffers[p.inputs[symbol.input]];
    const auto& shape = input_shapes[symbol.input];
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
    symbols.push_back(extent);
  }
}

void BoundShapes::check_inputs(std::span<const std::vector<std::int64_t>> input_shapes) const {
  const Program& p = program_;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    const auto& expected = shapes[p.inputs[k]];
    if (input_shapes[k] == expected) continue;
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
  const Program::Buffer& described = program_.buffers[buffer];
  const auto& shape = shapes[buffer];
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t bytes = described.element_bytes;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      throw Error("an extent is negative", ErrorKind::Usage)
          .at("buffer '", described.name, "'")
          .got(extent);
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > kMaxBytes) {
      throw Error("no memory holds a value of this shape", ErrorKind::OutOfMemory)
          .at("buffer '", described.name, "'")
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
    // Buffers that only steps for other values of the symbols use take no room.
    std::vector<bool> is_used(p.buffers.size(), false);
    for (const Program::Step& step : p.steps) {
      if (!runs(step)) continue;
      for (const std::uint32_t id : step.buffers) is_used[id] = true;
    }
    for (std::size_t k = 0; k < p.buffers.size(); ++k) {
      if (p.buffers[k].place != Program::Place::Arena) continue;
      requests.push_back(
          {is_used[k] ? bytes_of(k) : 0, p.buffers[k].first_step, p.buffers[k].last_step});
      requesters.push_back(k);
    }
    const ArenaPlan plan = plan_arena(requests);
    for (std::size_t k = 0; k < requesters.size(); ++k) offsets[requesters[k]] = plan.offsets[k];
    planned_bytes = plan.bytes;
  }
}

}  // namespace tenon
