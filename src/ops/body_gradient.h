#pragma once

#include "ops/differentiate.h"
#include "ops/gradient.h"

#include <cstddef>
#include <vector>

namespace tenon {

/// The body of a node of control flow with the nodes of its gradient behind its own; a graph that
/// the rules of `if`, `loop` and `scan` take bodies from that run forwards and backwards.
class BodyGradient {
 public:
  /// `types` are those of the node's operands as the body takes them; the body's own may say less.
  /// Throws Error (Unsupported) where one of them is not known.
  BodyGradient(const Graph& body, const std::vector<Type>& types);

  const Graph& graph() const { return graph_; }
  std::size_t input_count() const { return input_count_; }
  ValueId input(std::size_t position) const { return graph_.inputs()[position]; }
  bool is_float_input(std::size_t position) const;

  /// A further input that brings the gradient by an output of the body.
  ValueId add_upstream(std::size_t output);
  /// Differentiates by these inputs; zeros for those that nothing flows to.
  std::vector<ValueId> differentiate(const std::vector<std::size_t>& inputs);
  /// A further input of the type of the body's input, and the sum of it and a value.
  std::pair<ValueId, ValueId> add_sum(std::size_t input, ValueId value);

  /// Of what the body itself has or makes, constants aside: what the gradient's nodes read to make
  /// `values`. Ascending.
  std::vector<ValueId> read_by(const std::vector<ValueId>& values) const;
  /// The nodes that make `outputs` of `inputs`, as a graph of its own.
  Graph part(const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) const;
  std::vector<ValueId> body_inputs() const;
  const std::vector<ValueId>& body_outputs() const { return body_outputs_; }

 private:
  bool is_own(ValueId value) const;

  Graph graph_;
  std::vector<Flow> flows_;
  std::vector<ValueId> body_outputs_;
  std::size_t input_count_ = 0, node_bound_ = 0;
};

}  // namespace tenon
