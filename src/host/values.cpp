#include "host/values.h"

#include "base/error.h"
#include "host/program_types.h"

#include <algorithm>
#include <cstring>

namespace tenon::inline host {
namespace {

using BufferKind = Program::BufferKind;

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  if (tensor.byte_size() > 0)
    std::memcpy(copy.mutable_bytes().data(), tensor.bytes().data(), tensor.byte_size());
  return copy;
}

}  // namespace

Datum detached(Datum value, const std::vector<std::span<const std::byte>>& spans) {
  if (spans.empty()) return value;
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (tensor.dtype() == DType::String || tensor.byte_size() == 0) return value;
    const std::byte* data = tensor.bytes().data();
    const bool lies_inside = std::ranges::any_of(spans, [&](std::span<const std::byte> span) {
      return data >= span.data() && data < span.data() + span.size();
    });
    return lies_inside ? Datum(copy_of(tensor)) : value;
  }
  std::vector<Datum> items;
  for (const Datum& item : value.items()) items.push_back(detached(item, spans));
  if (value.kind() == Type::Kind::Optional)
    return items.empty() ? value : Datum::optional(std::move(items.front()));
  return items.empty() ? value : Datum::sequence(std::move(items));
}

void RunValues::begin(const std::vector<Datum>& inputs) {
  const Program& p = program();
  if (inputs.size() != p.inputs.size()) {
    throw Error("wrong number of inputs", ErrorKind::Usage)
        .expected(p.inputs.size())
        .got(inputs.size());
  }
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::uint32_t id = p.inputs[k];
    const std::optional<DType>& dtype = model_.dtypes()[id];
    Shape& shape = shapes.emplace_back();
    if (!dtype) continue;
    if (!inputs[k].is_tensor() || inputs[k].tensor().dtype() != *dtype) {
      throw Error(concat("input '", p.buffers[id].name, "' has the wrong element type"),
                  ErrorKind::Usage)
          .expected(p.buffers[id].dtype)
          .got(inputs[k].type());
    }
    shape = inputs[k].tensor().shape();
    runner_.set_address(
        id, const_cast<std::byte*>(inputs[k].tensor().bytes().data()));  // NOLINT: only read
  }
  if (!runner_.is_bound() || shapes != input_shapes_) {
    input_shapes_.clear();
    runner_.bind(shapes);
    input_shapes_ = std::move(shapes);
  }
  // Symbols computed by steps are unknown at the start of a run.
  for (std::size_t k = 0; k < p.symbols.size(); ++k) {
    const std::uint32_t source = p.symbols[k].buffer;
    if (source != kNoBuffer && p.buffers[source].place != BufferKind::Input)
      runner_.is_known[k] = false;
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) values_[p.inputs[k]].datum = inputs[k];
  for (const Program::State& state : p.states) {
    const std::uint32_t id = p.outputs[state.output], input = p.inputs[state.input];
    if (!state.may_overwrite || runner_.shapes[id] != runner_.shapes[input]) continue;
    values_[id].datum = inputs[state.input];
    runner_.set_address(id, runner_.address(input));
  }
  for (const std::uint32_t id : p.outputs) {
    if (p.buffers[id].place != BufferKind::Output || values_[id].datum) continue;
    Tensor made = make_tensor(id, runner_.shapes[id]);
    runner_.set_address(id,
                        const_cast<std::byte*>(made.bytes().data()));  // NOLINT: kernels write it
    values_[id].datum = std::move(made);
  }
}

std::vector<Datum> RunValues::end() {
  std::vector<Datum> outputs;
  for (const std::uint32_t id : program().outputs) outputs.push_back(kept(id));
  clear();
  return outputs;
}

void RunValues::clear() {
  for (RunValue& held : values_) held = {};
  pool_.end_run();
}

bool RunValues::is_moving(std::uint32_t buffer) const {
  const std::uint32_t root = root_of(program(), buffer);
  return program().buffers[root].place == BufferKind::Arena || values_[root].is_window;
}

const Shape& RunValues::shape(std::uint32_t buffer) {
  const auto& dims = program().buffers[buffer].dims;
  if (!std::ranges::all_of(dims, [&](const Extent& dim) { return runner_.is_resolved(dim); })) {
    throw Error("the program needs an extent before it is known")
        .at("'", program().buffers[buffer].name, "'");
  }
  runner_.compute_shape(buffer);
  return runner_.shapes[buffer];
}

Tensor RunValues::view_of(std::uint32_t buffer, const Shape& shape) {
  const std::optional<DType>& dtype = model_.dtypes()[buffer];
  TENON_ASSERT(dtype.has_value(), "a buffer in memory is a tensor");
  std::uint64_t bytes = info(*dtype).storage_bytes;
  for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
  const bool is_constant = program().buffers[buffer].place == BufferKind::Constant;
  if (is_constant) runner_.require_intact(buffer);
  return Tensor::borrow(*dtype, shape, is_constant ? program().constants : nullptr,
                        {runner_.address(buffer), bytes});
}

Datum RunValues::get(std::uint32_t buffer) {
  const Program::Buffer& described = program().buffers[buffer];
  if (values_[buffer].datum) return *values_[buffer].datum;
  if (values_[buffer].is_window) return view_of(buffer, values_[buffer].shape);
  switch (described.place) {
    case BufferKind::View:
      if (!is_tensor(buffer)) return get(static_cast<std::uint32_t>(described.offset));
      return tensor(static_cast<std::uint32_t>(described.offset)).reshaped(shape(buffer));
    case BufferKind::Arena:
      return view_of(buffer, runner_.shapes[buffer]);
    case BufferKind::Constant:
      return view_of(buffer, runner_.shapes[buffer]);
    default:
      break;
  }
  // A value without elements needs no definition.
  const bool is_empty =
      std::ranges::any_of(described.dims, [](const Extent& dim) { return dim == Extent(0); });
  if (is_empty && is_tensor(buffer)) return Tensor(*model_.dtypes()[buffer], shape(buffer));
  throw Error("the program reads a value before it is made").at("'", described.name, "'");
}

Tensor RunValues::tensor(std::uint32_t buffer) {
  Datum value = get(buffer);
  if (value.is_tensor()) return std::move(value.tensor());
  throw Error("the program takes for a tensor what is none")
      .at("'", program().buffers[buffer].name, "'")
      .got(value.type());
}

Datum RunValues::kept(std::uint32_t buffer) {
  Datum value = get(buffer);
  return is_moving(buffer) && value.is_tensor() ? Datum(copy_of(value.tensor())) : value;
}

// Defines the symbols that the shape determines; known symbols must agree.
void RunValues::check_shape(std::uint32_t buffer, const Shape& shape) {
  const Program::Buffer& described = program().buffers[buffer];
  if (shape.size() != described.dims.size()) {
    throw Error(concat("'", described.name, "' has the wrong rank"))
        .expected(described.dims.size(), " axes")
        .got(shape.size());
  }
  for (const std::uint32_t symbol : model_.symbols_of()[buffer]) {
    runner_.set_symbol(symbol, shape[program().symbols[symbol].axis]);
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!runner_.is_resolved(described.dims[axis])) continue;
    const std::int64_t expected = runner_.extent_of(buffer, axis);
    if (expected == shape[axis]) continue;
    throw Error(concat("'", described.name, "' has the wrong extent along axis ", axis))
        .expected(expected)
        .got(shape[axis]);
  }
}

void RunValues::set(std::uint32_t buffer, Datum value) {
  const Program::Buffer& described = program().buffers[buffer];
  const std::optional<DType>& dtype = model_.dtypes()[buffer];
  if (dtype) {
    if (!value.is_tensor() || value.tensor().dtype() != *dtype) {
      throw Error(concat("'", described.name, "' has the wrong type"))
          .expected(described.dtype)
          .got(value.type());
    }
    check_shape(buffer, value.tensor().shape());
  }
  if (described.place != BufferKind::Slot) {
    const Tensor& tensor = value.tensor();
    if (tensor.shape() != runner_.shapes[buffer]) {
      throw Error(concat("'", described.name, "' has the wrong shape")).got(value.type());
    }
    if (tensor.byte_size() > 0 && tensor.bytes().data() != address(buffer))
      std::memmove(address(buffer), tensor.bytes().data(), tensor.byte_size());
    return;
  }
  if (dtype)
    runner_.set_address(
        buffer, const_cast<std::byte*>(value.tensor().bytes().data()));  // NOLINT: only read
  values_[buffer] = {std::move(value), false, {}};
}

std::byte* RunValues::make_result(std::uint32_t buffer, const Shape& shape) {
  check_shape(buffer, shape);
  if (!is_planned(buffer)) {
    Tensor made = make_tensor(buffer, shape);
    // NOLINTNEXTLINE: the caller writes it
    runner_.set_address(buffer, const_cast<std::byte*>(made.bytes().data()));
    values_[buffer] = {Datum(std::move(made)), false, {}};
  } else if (shape != runner_.shapes[buffer]) {
    throw Error(concat("'", program().buffers[buffer].name, "' has the wrong shape"));
  }
  return address(buffer);
}

void RunValues::set_window(std::uint32_t slot, std::byte* address, Shape shape) {
  check_shape(slot, shape);
  runner_.set_address(slot, address);
  values_[slot] = {std::nullopt, true, std::move(shape)};
}

void RunValues::begin_body(std::uint32_t step) {
  for (const std::uint32_t symbol : model_.inner_symbols()[step]) runner_.is_known[symbol] = false;
}

void RunValues::release(std::uint32_t slot) { values_[slot] = {}; }

Tensor RunValues::empty_tensor(std::uint32_t buffer) const {
  const std::optional<DType>& dtype = model_.dtypes()[buffer];
  if (!dtype) return Tensor(DType::F32, {0});
  Shape shape;
  const std::vector<Extent>& dims = program().buffers[buffer].dims;
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    shape.push_back(runner_.is_resolved(dims[axis]) ? runner_.extent_of(buffer, axis) : 0);
  return Tensor(*dtype, std::move(shape));
}

DType RunValues::item_dtype(std::uint32_t buffer) const {
  const Type type = parse_type(program().buffers[buffer].dtype);
  const bool is_known = type.is_known() && !type.is_tensor() && type.element().is_tensor();
  return is_known ? type.element().tensor().dtype : DType::F32;
}

Tensor RunValues::make_tensor(std::uint32_t buffer, const Shape& shape) {
  const std::optional<DType>& dtype = model_.dtypes()[buffer];
  TENON_ASSERT(dtype.has_value(), "a buffer in memory is a tensor");
  std::uint64_t bytes = info(*dtype).storage_bytes;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > kMaxBytes) {
      throw Error("no memory holds a value of this shape", ErrorKind::OutOfMemory)
          .at("'", program().buffers[buffer].name, "'");
    }
  }
  std::shared_ptr<const Memory> block = pool_.take(bytes, program().buffers[buffer].name);
  const std::span<const std::byte> place{block->data(), bytes};
  return Tensor::borrow(*dtype, shape, std::move(block), place);
}

void RunValues::make_slot(std::uint32_t slot) {
  Tensor made = make_tensor(slot, runner_.shapes[slot]);
  runner_.set_address(slot,
                      const_cast<std::byte*>(made.bytes().data()));  // NOLINT: kernels write it
  values_[slot] = {Datum(std::move(made)), false, {}};
}

void RunValues::check_reads(const Segment& segment) {
  for (const std::uint32_t id : segment.reads) {
    if (program().buffers[id].place != BufferKind::Slot) continue;
    const RunValue& held = values_[id];
    if (!held.datum && !held.is_window)
      throw Error("the program reads a value before it is made")
          .at("'", program().buffers[id].name, "'");
    const Shape& actual = held.is_window ? held.shape : held.datum->tensor().shape();
    if (actual == runner_.shapes[id]) continue;
    throw Error(
        concat("'", program().buffers[id].name, "' has another shape than kernels take it for"));
  }
}

}  // namespace tenon::inline host
