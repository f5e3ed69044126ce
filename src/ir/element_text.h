#pragma once

#include "ir/dtype.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

// One number of a tensor as text, without loss. Complex elements are two numbers (see
// `component_of`), strings are quoted elsewhere.

/// The dtype of a complex number's parts; any other dtype is its own.
DType component_of(DType dtype);

/// Appends the number stored at `element`: a decimal that reads back as the same bits, or those
/// bits in hex where no decimal does (odd NaNs).
void append_number(std::string& out, DType dtype, const std::byte* element);

/// Stores the number that the text says at `element`, which has the dtype's storage bytes. Gives
/// what is wrong with it, or nothing.
std::optional<std::string> read_number(std::string_view text, DType dtype, std::byte* element);

/// Whether the bytes are an element of the dtype: a bool is 0 or 1, narrow types keep their range.
bool is_valid_element(DType dtype, std::byte element);

}  // namespace tenon
