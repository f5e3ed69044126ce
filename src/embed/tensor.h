#pragma once

#include "tenon/tenon.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tenon::embed {

/// An element type as the ABI numbers it, by its name in programs ("f32"); none for what is no
/// tensor.
tenon_dtype dtype_of(std::string_view name);
/// Its name; throws Error (Usage) for a number that is none.
std::string_view name_of(std::int32_t dtype);
/// Bytes that an element takes, which is also how it has to be aligned at least; 0 for strings.
std::size_t element_bytes(std::int32_t dtype);
/// What the data has to be a multiple of: the parts of a complex number count.
std::size_t alignment_of(std::int32_t dtype);

/// Its extents. Throws Error (Usage), naming the tensor, for a description that is none: a negative
/// rank or extent, a type that does not exist, more elements than there can be.
std::span<const std::int64_t> shape_of(const tenon_tensor& tensor, const std::string& name);
std::uint64_t byte_count(const tenon_tensor& tensor, const std::string& name);
/// Throws Error (Usage) unless the elements lie where code can use them as they are: row-major,
/// aligned, and there at all.
void require_usable(const tenon_tensor& tensor, const std::string& name);

/// "f32[1, 3]", for messages.
std::string type_text(const tenon_tensor& tensor);
std::string type_text(std::string_view dtype, std::span<const std::int64_t> shape);

}  // namespace tenon::embed
