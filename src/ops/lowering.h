#pragma once

#include "ir/graph.h"
#include "ops/expr.h"

#include <string_view>
#include <vector>

namespace tenon {

/// What an op's `lower` talks to: it asks for operands and defines each result.
class Lowering {
 public:
  /// `operands` by position (Unknown where missing), `results` by position; a result that is not
  /// wanted has an Unknown type.
  Lowering(const OpDef& op, std::vector<Type> operands, std::vector<Type> results);

  Expr operand(std::string_view name) const;
  bool has(std::string_view name) const;
  std::vector<Expr> variadic(std::string_view name) const;
  const TensorType& operand_type(std::string_view name) const;
  const TensorType& result_type(std::string_view name) const;
  /// False for an optional result that the node leaves out.
  bool wants(std::string_view result) const;
  std::size_t result_count() const { return results_.size(); }
  const TensorType& result_type(std::size_t position) const;

  /// Asks that dtype and extents are the result's; an expression of broadcastable shape is widened.
  void define(std::string_view result, const Expr& value);
  void define(std::size_t position, const Expr& value);

  /// What was defined, by result position; undefined where not wanted.
  const std::vector<Expr>& definitions() const { return definitions_; }

 private:
  std::size_t position_of(std::string_view operand) const;

  const OpDef& op_;
  std::vector<Type> operands_, results_;
  std::vector<Expr> definitions_;
};

/// Runs the op's `lower` and gives the expression of every wanted result. Asks that it has one.
std::vector<Expr> lower_op(const OpDef& op, const Attributes& attrs, std::vector<Type> operands,
                           std::vector<Type> results);

/// Elements of small integer results as numbers or symbols, where they follow from known operands.
/// `known` is by operand position.
std::optional<Dims> known_elements(const Expr& expr, const std::vector<const Dims*>& known);

/// `attrs` completed with what dynamic operands hold; `values` is by operand position, null where
/// the operand is missing.
Attributes bind_dynamic_attributes(const OpDef& op, Attributes attrs,
                                   const std::vector<const Tensor*>& values);

}  // namespace tenon
