#pragma once

#include "ir/graph.h"
#include "ops/definition/var_ops.h"
#include "tenon/builder.h"

#include <map>
#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// A value and its gradient.
struct Flow {
  Var value, gradient;
};

/// Differentiation of a graph (`differentiate` of autodiff/differentiate.h), which the rules of
/// control-flow ops call for their bodies.
using Differentiate = std::vector<Var> (*)(Builder& builder, const std::vector<Flow>& flows,
                                           const std::vector<Var>& xs);

/// Interface of an op's `gradient` rule: provides operands, results and the upstream gradients, and
/// accumulates the gradients of operands. Computations append nodes.
class Gradient {
 public:
  /// `upstream` is indexed by result position; invalid for results without a gradient.
  Gradient(Builder& builder, const Graph& graph, NodeId node, std::vector<Var> upstream,
           Differentiate differentiate);

  Builder& build() const { return builder_; }
  Differentiate differentiate() const { return differentiate_; }
  bool has(std::string_view operand) const;
  Var operand(std::string_view name) const;
  Var result(std::string_view name) const;
  std::vector<Var> variadic(std::string_view name) const;
  /// Gradient of the loss with respect to a result; zeros without one.
  Var upstream(std::string_view result) const;
  Var upstream(std::size_t position) const;
  bool has_upstream(std::string_view result) const;
  std::size_t result_count() const { return graph_.node(node_).results.size(); }
  // By value: appending nodes reallocates the graph's storage.
  TensorType operand_type(std::string_view name) const;
  TensorType result_type(std::string_view name) const;

  /// Accumulates the gradient of an operand. A value of another broadcast shape is summed or
  /// expanded to the operand's shape.
  void add(std::string_view operand, Var gradient);
  void add(std::size_t position, Var gradient);

  /// By operand position; invalid for operands without a gradient.
  const std::vector<Var>& gradients() const { return gradients_; }

 private:
  std::size_t position_of(std::string_view operand) const;
  TensorType type_of(ValueId value) const;

  Builder& builder_;
  const Graph& graph_;
  NodeId node_;
  std::vector<Var> upstream_;
  std::vector<Var> gradients_;
  Differentiate differentiate_;
};

}  // namespace tenon::inline ops
