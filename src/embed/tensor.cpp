#include "embed/tensor.h"

#include "base/error.h"

#include <algorithm>
#include <array>

namespace tenon::embed {
namespace {

struct Known {
  tenon_dtype dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kKnown = {
    Known{TENON_F64, "f64", 8},
    Known{TENON_F32, "f32", 4},
    Known{TENON_F16, "f16", 2},
    Known{TENON_BF16, "bf16", 2},
    Known{TENON_F8E4M3FN, "f8e4m3fn", 1},
    Known{TENON_F8E4M3FNUZ, "f8e4m3fnuz", 1},
    Known{TENON_F8E5M2, "f8e5m2", 1},
    Known{TENON_F8E5M2FNUZ, "f8e5m2fnuz", 1},
    Known{TENON_F8E8M0, "f8e8m0", 1},
    Known{TENON_F4E2M1, "f4e2m1", 1},
    Known{TENON_I64, "i64", 8},
    Known{TENON_I32, "i32", 4},
    Known{TENON_I16, "i16", 2},
    Known{TENON_I8, "i8", 1},
    Known{TENON_I4, "i4", 1},
    Known{TENON_I2, "i2", 1},
    Known{TENON_U64, "u64", 8},
    Known{TENON_U32, "u32", 4},
    Known{TENON_U16, "u16", 2},
    Known{TENON_U8, "u8", 1},
    Known{TENON_U4, "u4", 1},
    Known{TENON_U2, "u2", 1},
    Known{TENON_BOOL, "bool", 1},
    Known{TENON_C64, "c64", 8},
    Known{TENON_C128, "c128", 16},
    Known{TENON_STRING, "string", 0},
};

constexpr std::int64_t kMostElements = std::int64_t{1} << 46;
constexpr std::int32_t kMostAxes = 1024;

const Known& known(std::int32_t dtype) {
  if (dtype < 1 || static_cast<std::size_t>(dtype) > kKnown.size())
    throw Error("no element type has this number", ErrorKind::Usage).got(dtype);
  return kKnown[static_cast<std::size_t>(dtype) - 1];
}

}  // namespace

tenon_dtype dtype_of(std::string_view name) {
  for (const Known& one : kKnown) {
    if (one.name == name) return one.dtype;
  }
  return TENON_NO_DTYPE;
}

std::string_view name_of(std::int32_t dtype) { return known(dtype).name; }
std::size_t element_bytes(std::int32_t dtype) { return known(dtype).bytes; }
std::size_t alignment_of(std::int32_t dtype) {
  return dtype == TENON_C64 || dtype == TENON_C128 ? element_bytes(dtype) / 2
                                                   : element_bytes(dtype);
}

std::span<const std::int64_t> shape_of(const tenon_tensor& tensor, const std::string& name) {
  if (tensor.rank < 0 || tensor.rank > kMostAxes)
    throw Error(concat(name, " has an impossible rank"), ErrorKind::Usage).got(tensor.rank);
  if (tensor.rank > 0 && tensor.shape == nullptr)
    throw Error(concat(name, " has no shape"), ErrorKind::Usage).got("a null pointer");
  const std::span shape(tensor.shape, static_cast<std::size_t>(tensor.rank));
  for (const std::int64_t extent : shape) {
    if (extent < 0 || extent > kMostElements)
      throw Error(concat(name, " has an impossible extent"), ErrorKind::Usage)
          .got(type_text(name_of(tensor.dtype), shape));
  }
  return shape;
}

std::uint64_t byte_count(const tenon_tensor& tensor, const std::string& name) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t extent : shape_of(tensor, name)) {
    if (extent == 0) is_empty = true;
    if (extent == 0 || is_empty) continue;
    if (count > kMostElements / extent)
      throw Error(concat(name, " has more elements than there can be"), ErrorKind::Usage)
          .got(type_text(tensor));
    count *= extent;
  }
  return is_empty ? 0 : static_cast<std::uint64_t>(count) * element_bytes(tensor.dtype);
}

void require_usable(const tenon_tensor& tensor, const std::string& name) {
  const std::span<const std::int64_t> shape = shape_of(tensor, name);
  if (tensor.dtype == TENON_STRING) {
    throw Error(concat(name, " is of strings, which have no fixed size"), ErrorKind::Usage)
        .hint("tenon_value_strings and tenon_context_run_values take them");
  }
  const std::uint64_t bytes = byte_count(tensor, name);
  if (bytes == 0) return;  // empty tensors may have null data
  if (tensor.data == nullptr)
    throw Error(concat(name, " has no data"), ErrorKind::Usage).got("a null pointer");
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment_of(tensor.dtype) != 0) {
    throw Error(concat(name, " is not aligned for its elements"), ErrorKind::Usage)
        .expected("an address that ", alignment_of(tensor.dtype), " divides")
        .got(reinterpret_cast<std::uintptr_t>(tensor.data))
        .hint("copy it to memory of its own");
  }
  if (tensor.strides == nullptr) return;
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && tensor.strides[axis] != stride) {
      throw Error(concat(name, " does not lie row by row"), ErrorKind::Usage)
          .expected("a stride of ", stride, " along axis ", axis)
          .got(tensor.strides[axis])
          .hint("copy it to memory of its own");
    }
    stride *= shape[axis];
  }
}

void require_disjoint(std::span<PortMemory> ports) {
  std::ranges::sort(ports, {}, &PortMemory::begin);
  const PortMemory *last = nullptr, *last_output = nullptr;  // With the greatest ends so far.
  for (const PortMemory& port : ports) {
    if (port.begin == port.end) continue;
    const PortMemory* other = port.is_output ? last : last_output;
    if (other != nullptr && port.begin < other->end) {
      const PortMemory &output = port.is_output ? port : *other,
                       &tensor = port.is_output ? *other : port;
      throw Error(concat(*output.name, " overlaps ", *tensor.name), ErrorKind::Usage)
          .expected("an output in memory of its own")
          .got(std::min(port.end, other->end) - port.begin, " bytes of both")
          .hint("outputs without memory stay valid until the next run: copy one that is its input");
    }
    if (last == nullptr || port.end > last->end) last = &port;
    if (port.is_output && (last_output == nullptr || port.end > last_output->end))
      last_output = &port;
  }
}

std::string type_text(std::string_view dtype, std::span<const std::int64_t> shape) {
  std::string text(dtype);
  text += "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

std::string type_text(const tenon_tensor& tensor) {
  return type_text(
      name_of(tensor.dtype),
      {tensor.shape, tensor.shape == nullptr ? 0 : static_cast<std::size_t>(tensor.rank)});
}

}  // namespace tenon::embed
