#pragma once

#include "expr/expr.h"
#include "ir/graph.h"

#include <string_view>
#include <vector>

namespace tenon::inline expr {

/// Interface of an op's `lower`: provides operands and collects the definition of each result.
class Lowering {
 public:
  /// `operands` and `results` are indexed by position. A missing operand and a result that is not
  /// computed have an Unknown type.
  Lowering(const OpDef& op, std::vector<Type> operands, std::vector<Type> results);

  Expr operand(std::string_view name) const;
  bool has(std::string_view name) const;
  std::vector<Expr> variadic(std::string_view name) const;
  const TensorType& operand_type(std::string_view name) const;
  const TensorType& result_type(std::string_view name) const;
  /// False for an optional result that the node omits.
  bool wants(std::string_view result) const;
  std::size_t result_count() const { return results_.size(); }
  const TensorType& result_type(std::size_t position) const;

  /// Requires the result's dtype and extents; broadcasts an expression of another shape.
  void define(std::string_view result, const Expr& value);
  void define(std::size_t position, const Expr& value);

  /// Definitions by result position; undefined for omitted results.
  const std::vector<Expr>& definitions() const { return definitions_; }

 private:
  std::size_t position_of(std::string_view operand) const;

  const OpDef& op_;
  std::vector<Type> operands_, results_;
  std::vector<Expr> definitions_;
};

/// Runs the op's `lower` and returns the expression of every computed result. Requires a lowering.
std::vector<Expr> lower_op(const OpDef& op, const Attributes& attrs, std::vector<Type> operands,
                           std::vector<Type> results);

/// Returns the elements of small integer results as numbers or symbols, if they follow from known
/// operands. `known` is indexed by operand position.
std::optional<Dims> known_elements(const Expr& expr, const std::vector<const Dims*>& known);

/// Completes `attrs` with the values of dynamic operands; `values` is indexed by operand position,
/// null for missing operands.
Attributes bind_dynamic_attributes(const OpDef& op, Attributes attrs,
                                   const std::vector<const Tensor*>& values);

}  // namespace tenon::inline expr
