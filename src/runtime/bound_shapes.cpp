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
  check_inputs(input_shapes);
  // Checks come before any use of extents: invalid extents have no shape.
  check_symbols();
  for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
    if (std::ranges::all_of(program_.buffers[k].dims,
                            [&](const Extent& dim) { return is_told(dim); }))
      compute_shape(k);
  }
  output_shapes.clear();
  for (const std::uint32_t output : program_.outputs) output_shapes.push_back(shapes[output]);
  place();
}

void BoundShapes::compute_shape(std::size_t buffer) {
  shapes[buffer].clear();
  for (const Extent& dim : program_.buffers[buffer].dims)
    shapes[buffer].push_back(dim.value(symbols));
}

bool BoundShapes::is_told(const Extent& extent) const {
  return std::ranges::all_of(extent.steps(), [&](const Extent::Step& step) {
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
    if (is_told(check.a) && is_told(check.b)) require_check(check, symbols);
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
    if (symbol.buffer == kNoBuffer || p.buffers[symbol.buffer].place != Program::Place::Input)
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
      expected.push_back(is_told(dims[axis]) || !is_given ? dims[axis].value(symbols)
                                                          : input_shapes[k][axis]);
    }
    if (input_shapes[k] == expected) {
      shapes[p.inputs[k]] = std::move(expected);
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
    // Buffers that only skipped steps use need no memory.
    std::vector<bool> is_used(p.buffers.size(), false);
    for (const Program::Step& step : p.steps) {
      if (!runs(step)) continue;
      for (const std::uint32_t id : step.buffers) is_used[root_of(p, id)] = true;
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
