#pragma once

#include "ir/graph.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Interface of an op's `infer`: the operands' types by name and the known parts of their values.
class OperandTypes {
 public:
  /// Thrown by `operator[]` for an operand of Unknown type: the results are then Unknown too.
  struct NotKnownYet {};

  OperandTypes(const OpDef& op, const InferInput& input) : op_(op), input_(input) {}

  /// For rules that several ops share.
  const std::string& op_name() const { return op_.name; }
  bool has(std::string_view name) const;
  /// The operand's tensor type. Throws Error if it is missing, or a sequence or optional.
  const TensorType& operator[](std::string_view name) const;
  /// The operand's type of any kind; Unknown if missing.
  const Type& type(std::string_view name) const;
  std::vector<TensorType> variadic(std::string_view name) const;
  std::vector<Type> variadic_types(std::string_view name) const;
  /// The operand's elements if they are known (see OperandFacts); null otherwise.
  const Dims* known(std::string_view name) const;
  const Tensor* value(std::string_view name) const;
  const std::vector<Graph>& bodies() const { return input_.bodies; }
  std::size_t result_count() const { return input_.result_count; }
  /// Returns a new data-dependent extent at each call.
  Dim unknown() const;

 private:
  const OperandFacts* facts(std::string_view name) const;

  const OpDef& op_;
  const InferInput& input_;
  mutable int unknown_count_ = 0;
};

/// Shared checks. Each throws an Error that starts with the op's name.
///
/// Returns `axis` counted from the front.
std::size_t normal_axis(std::string_view op, std::int64_t axis, std::size_t rank);
/// Returns sorted axes counted from the front; refuses repeats. All axes for an empty list.
std::vector<std::int64_t> normal_axes(std::string_view op, const std::vector<std::int64_t>& axes,
                                      std::size_t rank);
void require_same_dtype(std::string_view op, const TensorType& a, const TensorType& b);
void require_rank(std::string_view op, std::string_view operand, const TensorType& type,
                  std::size_t rank);
void require_strings(std::string_view op, const TensorType& type);
/// Returns the type of an elementwise result: broadcast dims, `dtype`, and the operands' layout.
TensorType broadcast_type(std::string_view op, const TensorType& a, const TensorType& b,
                          DType dtype);

}  // namespace tenon::inline ops
