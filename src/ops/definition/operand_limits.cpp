#include "ops/definition/operand_limits.h"

#include "base/error.h"
#include "ir/assumptions.h"

#include <algorithm>

namespace tenon::inline ops {

void require_one_element(const OperandTypes& in, std::string_view operand) {
  if (assume_equal(element_count(in[operand]), 1)) return;
  throw Error(concat(in.op_name(), ": operand '", operand, "' must hold one element"))
      .got(in[operand]);
}

void require_at_least(std::string_view op, std::string_view what, const Dim& value,
                      std::int64_t least) {
  if (assume_at_most(least, value)) return;
  throw Error(concat(op, ": ", what, " must be at least ", least)).got(value);
}

void require_at_most(std::string_view op, std::string_view operand, const TensorType& type,
                     std::size_t axis, const Dim& limit) {
  if (assume_at_most(type.dims[axis], limit)) return;
  throw Error(concat(op, ": operand '", operand, "' is too long"))
      .expected("at most ", limit, " along axis ", axis)
      .got(type);
}

void require_numbers(std::string_view op, std::string_view attr, DType dtype) {
  if (dtype != DType::String) return;
  throw Error(concat(op, ": attribute '", attr, "' must be an element type of numbers")).got(dtype);
}

void require_source(std::string_view op, const TensorType& image, const TensorType& result) {
  const auto is_empty = [](const Dim& extent) { return extent == Dim(0); };
  if (std::ranges::none_of(image.dims, is_empty) || std::ranges::any_of(result.dims, is_empty))
    return;
  throw Error(concat(op, ": the image has no elements to read"))
      .expected("at least one position along each axis")
      .got(image);
}

}  // namespace tenon::inline ops
