#pragma once

#include "ir/graph.h"
#include "ops/var_ops.h"
#include "tenon/builder.h"

#include <map>
#include <string_view>
#include <vector>

namespace tenon {

/// What an op's `gradient` talks to. It reads operands, results and the gradients that flow in
/// ("upstream"), and adds to the gradients of operands; nodes are appended as it computes.
class Gradient {
 public:
  /// `upstream` by result position; invalid where nothing flows in.
  Gradient(Builder& builder, const Graph& graph, NodeId node, std::vector<Var> upstream);

  Builder& build() const { return builder_; }
  bool has(std::string_view operand) const;
  Var operand(std::string_view name) const;
  Var result(std::string_view name) const;
  std::vector<Var> variadic(std::string_view name) const;
  /// The gradient of the loss by a result; zeros where nothing flows in.
  Var upstream(std::string_view result) const;
  Var upstream(std::size_t position) const;
  bool has_upstream(std::string_view result) const;
  std::size_t result_count() const { return graph_.node(node_).results.size(); }
  // By value: appending nodes moves what the graph holds.
  TensorType operand_type(std::string_view name) const;
  TensorType result_type(std::string_view name) const;

  /// Adds to the gradient by an operand. A value of another broadcast shape is summed, or repeated,
  /// to the operand's.
  void add(std::string_view operand, Var gradient);
  void add(std::size_t position, Var gradient);

  /// By operand position; invalid where nothing was added.
  const std::vector<Var>& gradients() const { return gradients_; }

 private:
  std::size_t position_of(std::string_view operand) const;
  TensorType type_of(ValueId value) const;

  Builder& builder_;
  const Graph& graph_;
  NodeId node_;
  std::vector<Var> upstream_;
  std::vector<Var> gradients_;
};

}  // namespace tenon
