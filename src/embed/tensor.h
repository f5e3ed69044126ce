#pragma once

#include "tenon/tenon.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tenon::embed {

/// Returns the ABI's number of an element type by its name in programs ("f32"); TENON_NO_DTYPE for
/// values that are not tensors.
tenon_dtype dtype_of(std::string_view name);
/// Returns the name; throws Error (Usage) for an invalid number.
std::string_view name_of(std::int32_t dtype);
/// Size of an element; 0 for strings.
std::size_t element_bytes(std::int32_t dtype);
/// Required alignment of the data; for complex numbers that of their parts.
std::size_t alignment_of(std::int32_t dtype);

/// Returns the extents. Throws Error (Usage), naming the tensor, for an invalid description:
/// negative rank or extent, unknown type, or too many elements.
std::span<const std::int64_t> shape_of(const tenon_tensor& tensor, const std::string& name);
std::uint64_t byte_count(const tenon_tensor& tensor, const std::string& name);
/// Throws Error (Usage) unless the elements are present, row-major and aligned.
void require_usable(const tenon_tensor& tensor, const std::string& name);

/// Memory of an input or output during a run.
struct PortMemory {
  std::uintptr_t begin = 0, end = 0;
  /// E.g. "input 'x'".
  const std::string* name = nullptr;
  bool is_output = false;
};
/// Throws Error (Usage) if an output overlaps an input or another output. Reorders the list.
void require_disjoint(std::span<PortMemory> ports);

/// E.g. "f32[1, 3]", for messages.
std::string type_text(const tenon_tensor& tensor);
std::string type_text(std::string_view dtype, std::span<const std::int64_t> shape);

}  // namespace tenon::embed
