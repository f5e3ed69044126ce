#pragma once

#include "ir/dtype.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::inline ir {

// Lossless text of one number of a tensor. A complex element is two numbers (see `component_of`);
// strings are quoted elsewhere.

/// Returns the dtype of a complex number's parts, or the dtype itself if it is not complex.
DType component_of(DType dtype);

/// Appends the number stored at `element`: a decimal that reads back as the same bits, or the bits
/// in hex if no decimal does (NaN payloads).
void append_number(std::string& out, DType dtype, const std::byte* element);

/// Parses a number and stores it at `element`, which has the dtype's storage bytes. Returns the
/// error message, or nullopt on success.
std::optional<std::string> read_number(std::string_view text, DType dtype, std::byte* element);

/// Returns whether the byte is a valid element of the dtype: a bool is 0 or 1, sub-byte types stay
/// in range.
bool is_valid_element(DType dtype, std::byte element);

}  // namespace tenon::inline ir
