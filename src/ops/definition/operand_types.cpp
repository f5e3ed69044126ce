#include "ops/definition/operand_types.h"

#include "base/error.h"
#include "expr/expr.h"

#include <algorithm>

namespace tenon::inline ops {

const OperandFacts* OperandTypes::facts(std::string_view name) const {
  const auto index = op_.operand_index(name);
  TENON_ASSERT(index.has_value(), concat(op_.name, " has an operand called ", name));
  if (*index >= input_.operands.size() || !input_.present[*index]) return nullptr;
  return &input_.operands[*index];
}

bool OperandTypes::has(std::string_view name) const { return facts(name) != nullptr; }

const Type& OperandTypes::type(std::string_view name) const {
  static const Type unknown;
  const OperandFacts* found = facts(name);
  return found ? found->type : unknown;
}

const TensorType& OperandTypes::operator[](std::string_view name) const {
  const OperandFacts* found = facts(name);
  if (!found) throw Error(concat(op_.name, ": operand '", name, "' is missing"));
  if (!found->type.is_known()) throw NotKnownYet{};
  if (!found->type.is_tensor()) {
    throw Error(concat(op_.name, ": operand '", name, "' must be a tensor")).got(found->type);
  }
  return found->type.tensor();
}

std::vector<Type> OperandTypes::variadic_types(std::string_view name) const {
  std::vector<Type> types;
  for (std::size_t k = *op_.operand_index(name); k < input_.operands.size(); ++k) {
    types.push_back(input_.operands[k].type);
  }
  return types;
}

std::vector<TensorType> OperandTypes::variadic(std::string_view name) const {
  std::vector<TensorType> tensors;
  for (const Type& type : variadic_types(name)) {
    if (!type.is_known()) throw NotKnownYet{};
    if (!type.is_tensor()) {
      throw Error(concat(op_.name, ": operands '", name, "' must be tensors")).got(type);
    }
    tensors.push_back(type.tensor());
  }
  return tensors;
}

const Dims* OperandTypes::known(std::string_view name) const {
  const OperandFacts* found = facts(name);
  return found ? found->known : nullptr;
}

const Tensor* OperandTypes::value(std::string_view name) const {
  const OperandFacts* found = facts(name);
  return found ? found->value : nullptr;
}

Dim OperandTypes::unknown() const { return Dim::symbol(concat("?", unknown_count_++)); }

std::size_t normal_axis(std::string_view op, std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    throw Error(concat(op, ": axis is outside the tensor's rank"))
        .expected("an axis in [", -signed_rank, ", ", signed_rank - 1, "]")
        .got(axis);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<std::int64_t> normal_axes(std::string_view op, const std::vector<std::int64_t>& axes,
                                      std::size_t rank) {
  std::vector<std::int64_t> normal;
  for (std::int64_t axis : axes) {
    normal.push_back(static_cast<std::int64_t>(normal_axis(op, axis, rank)));
  }
  if (axes.empty()) {
    for (std::size_t axis = 0; axis < rank; ++axis)
      normal.push_back(static_cast<std::int64_t>(axis));
  }
  std::sort(normal.begin(), normal.end());
  if (std::adjacent_find(normal.begin(), normal.end()) != normal.end()) {
    throw Error(concat(op, ": an axis is named twice"));
  }
  return normal;
}

void require_same_dtype(std::string_view op, const TensorType& a, const TensorType& b) {
  if (a.dtype == b.dtype) return;
  throw Error(concat(op, ": operands differ in element type"))
      .expected("one element type")
      .got(a, " and ", b)
      .hint("insert a cast");
}

void require_rank(std::string_view op, std::string_view operand, const TensorType& type,
                  std::size_t rank) {
  if (type.rank() == rank) return;
  throw Error(concat(op, ": operand '", operand, "' has the wrong rank"))
      .expected("rank ", rank)
      .got(type);
}

void require_strings(std::string_view op, const TensorType& type) {
  if (type.dtype != DType::String) throw Error(concat(op, ": texts are needed here")).got(type);
}

TensorType broadcast_type(std::string_view op, const TensorType& a, const TensorType& b,
                          DType dtype) {
  TensorType type{dtype, {}, {}};
  try {
    type.dims = broadcast_dims(a.dims, b.dims);
  } catch (const Error&) {
    throw Error(concat(op, ": shapes do not broadcast"))
        .expected("extents that are equal or 1, counted from the last axis")
        .got(a, " and ", b);
  }
  if (!a.layout.is_empty() && a.rank() == type.rank()) type.layout = a.layout;
  if (!b.layout.is_empty() && b.rank() == type.rank()) {
    if (!type.layout.is_empty() && type.layout != b.layout) {
      throw Error(concat(op, ": operands differ in layout"))
          .got(a, " and ", b)
          .hint("bring them to one layout with a transpose");
    }
    type.layout = b.layout;
  }
  return type;
}

}  // namespace tenon::inline ops
