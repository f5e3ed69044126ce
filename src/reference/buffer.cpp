#include "reference/buffer.h"

#include "ir/float_formats.h"

namespace tenon::reference {
namespace {

template <class StorageClass, class Wide, class Convert>
void load(const Buffer& buffer, std::int64_t offset, std::int64_t stride, std::int64_t count,
          void* out, Convert convert) {
  const StorageClass* from = buffer.tensor.as<StorageClass>().data() + offset;
  Wide* to = static_cast<Wide*>(out);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert(from[i * stride]);
  }
}

template <class StorageClass, class Wide>
void load_as(const Buffer& buffer, std::int64_t offset, std::int64_t stride, std::int64_t count,
             void* out) {
  load<StorageClass, Wide>(buffer, offset, stride, count, out,
                           [](StorageClass x) { return static_cast<Wide>(x); });
}

template <DType dtype>
void load_narrow(const Buffer& buffer, std::int64_t offset, std::int64_t stride, std::int64_t count,
                 void* out) {
  load<std::uint8_t, float>(buffer, offset, stride, count, out,
                            [](std::uint8_t x) { return narrow_float_to_f32(dtype, x); });
}

void load_text(const Buffer& buffer, std::int64_t offset, std::int64_t stride, std::int64_t count,
               void* out) {
  const std::string* from = buffer.tensor.strings().data() + offset;
  Text* to = static_cast<Text*>(out);
  for (std::int64_t i = 0; i < count; ++i) to[i] = from + i * stride;
}

}  // namespace

Buffer Buffer::of(Tensor tensor, bool holds_pointers) {
  Buffer buffer;
  buffer.shape = tensor.shape();
  buffer.tensor = std::move(tensor);
  buffer.holds_pointers = holds_pointers;
  buffer.strides.resize(buffer.shape.size(), 0);
  // Without elements the other extents may overflow strides.
  if (buffer.tensor.size() == 0) return buffer;
  std::int64_t stride = 1;
  for (std::size_t axis = buffer.shape.size(); axis-- > 0;) {
    buffer.strides[axis] = stride;
    stride *= buffer.shape[axis];
  }
  return buffer;
}

Buffer Buffer::reshaped(Shape new_shape) const {
  return of(tensor.reshaped(std::move(new_shape)), holds_pointers);
}

Loader loader_of(const Buffer& buffer) {
  if (buffer.holds_pointers) return load_as<std::int64_t, std::int64_t>;
  switch (buffer.tensor.dtype()) {
    case DType::F64:
      return load_as<double, double>;
    case DType::F32:
      return load_as<float, float>;
    case DType::F16:
      return
          [](const Buffer& b, std::int64_t offset, std::int64_t stride, std::int64_t count,
             void* out) { load<std::uint16_t, float>(b, offset, stride, count, out, f16_to_f32); };
    case DType::BF16:
      return
          [](const Buffer& b, std::int64_t offset, std::int64_t stride, std::int64_t count,
             void* out) { load<std::uint16_t, float>(b, offset, stride, count, out, bf16_to_f32); };
    case DType::F8E4M3FN:
      return load_narrow<DType::F8E4M3FN>;
    case DType::F8E4M3FNUZ:
      return load_narrow<DType::F8E4M3FNUZ>;
    case DType::F8E5M2:
      return load_narrow<DType::F8E5M2>;
    case DType::F8E5M2FNUZ:
      return load_narrow<DType::F8E5M2FNUZ>;
    case DType::F8E8M0:
      return load_narrow<DType::F8E8M0>;
    case DType::F4E2M1:
      return load_narrow<DType::F4E2M1>;
    case DType::I64:
      return load_as<std::int64_t, std::int64_t>;
    case DType::I32:
      return load_as<std::int32_t, std::int64_t>;
    case DType::I16:
      return load_as<std::int16_t, std::int64_t>;
    case DType::I8:
    case DType::I4:
    case DType::I2:
      return load_as<std::int8_t, std::int64_t>;
    case DType::U64:
      return load_as<std::uint64_t, std::uint64_t>;
    case DType::U32:
      return load_as<std::uint32_t, std::int64_t>;
    case DType::U16:
      return load_as<std::uint16_t, std::int64_t>;
    case DType::U8:
    case DType::U4:
    case DType::U2:
    case DType::Bool:
      return load_as<std::uint8_t, std::int64_t>;
    case DType::C64:
      return load_as<std::complex<float>, std::complex<double>>;
    case DType::C128:
      return load_as<std::complex<double>, std::complex<double>>;
    case DType::String:
      return load_text;
  }
  TENON_ASSERT(false, "every dtype can be loaded");
}

LaneType lane_of(const Buffer& buffer) {
  return buffer.holds_pointers ? LaneType::Text : lane_of(buffer.tensor.dtype());
}

Buffer make_buffer(LaneType lane, Shape shape) {
  constexpr DType kStorage[] = {DType::F32, DType::F64,  DType::I64,
                                DType::U64, DType::C128, DType::I64};
  return Buffer::of(Tensor(kStorage[static_cast<std::size_t>(lane)], std::move(shape)),
                    lane == LaneType::Text);
}

Tensor to_tensor(const Buffer& buffer, DType dtype) {
  if (dtype == DType::String) {
    if (!buffer.holds_pointers) return buffer.tensor;
    std::vector<std::string> strings;
    for (std::int64_t pointer : buffer.tensor.as<std::int64_t>()) {
      strings.push_back(*reinterpret_cast<Text>(pointer));
    }
    return Tensor::of_strings(buffer.shape, std::move(strings));
  }
  if (buffer.tensor.dtype() == dtype) return buffer.tensor;
  if (info(dtype).arithmetic == Arithmetic::F32 && info(dtype).bits <= 8) {
    // The cast in the expression has saturated already; remaining infinities are intended.
    Tensor narrow(dtype, buffer.shape);
    const std::span<const float> from = buffer.tensor.as<float>();
    const std::span<std::uint8_t> to = narrow.as_mutable<std::uint8_t>();
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = f32_to_narrow_float(dtype, from[k], Overflow::Special);
    }
    return narrow;
  }
  return buffer.tensor.converted(dtype);
}

}  // namespace tenon::reference
