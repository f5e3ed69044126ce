#pragma once

#include "ops/operand_types.h"

#include <string_view>

// Checks of numbers that ops share, as far as they are known; each throws an Error that starts with
// the op's name.
namespace tenon {

/// Asks that the operand holds one element.
void require_one_element(const OperandTypes& in, std::string_view operand);
/// Asks that an extent or an attribute is at least `least`.
void require_at_least(std::string_view op, std::string_view what, const Dim& value,
                      std::int64_t least);
/// Asks that the operand is no longer than `limit` along an axis.
void require_at_most(std::string_view op, std::string_view operand, const TensorType& type,
                     std::size_t axis, const Dim& limit);
/// Asks that an attribute that names an element type names one that holds numbers.
void require_numbers(std::string_view op, std::string_view attr, DType dtype);
/// Asks that an image has elements to read wherever the result has elements to make.
void require_source(std::string_view op, const TensorType& image, const TensorType& result);

}  // namespace tenon
