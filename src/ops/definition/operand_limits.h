#pragma once

#include "ops/definition/operand_types.h"

#include <string_view>

// Shared checks of numbers, as far as they are known. Each throws an Error that starts with the
// op's name.
namespace tenon::inline ops {

/// Requires a single element.
void require_one_element(const OperandTypes& in, std::string_view operand);
/// Requires that an extent or an attribute is at least `least`.
void require_at_least(std::string_view op, std::string_view what, const Dim& value,
                      std::int64_t least);
/// Requires that the operand's extent along an axis is at most `limit`.
void require_at_most(std::string_view op, std::string_view operand, const TensorType& type,
                     std::size_t axis, const Dim& limit);
/// Requires that an element type attribute names a numeric type.
void require_numbers(std::string_view op, std::string_view attr, DType dtype);
/// Requires a nonempty image unless the result is empty.
void require_source(std::string_view op, const TensorType& image, const TensorType& result);

}  // namespace tenon::inline ops
