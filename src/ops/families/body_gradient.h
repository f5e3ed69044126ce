#pragma once

#include "ops/definition/gradient.h"

#include <cstddef>
#include <vector>

namespace tenon::inline ops {

/// Body of a control-flow node, extended by its gradient nodes. The gradient rules of `if`, `loop`
/// and `scan` cut their forward and backward bodies from this graph.
class BodyGradient {
 public:
  /// `types` are the types of the node's operands in the order of the body's inputs; the body's own
  /// types may be less specific. Throws Error (Unsupported) if one of them is unknown.
  BodyGradient(const Graph& body, const std::vector<Type>& types, Differentiate differentiate);

  const Graph& graph() const { return graph_; }
  std::size_t input_count() const { return input_count_; }
  ValueId input(std::size_t position) const { return graph_.inputs()[position]; }
  bool is_float_input(std::size_t position) const;

  /// Adds an input that carries the gradient of a body output.
  ValueId add_upstream(std::size_t output);
  /// Differentiates with respect to these inputs; zeros for inputs without a gradient.
  std::vector<ValueId> differentiate(const std::vector<std::size_t>& inputs);
  /// Adds an input of the type of the body's input; returns it and its sum with a value.
  std::pair<ValueId, ValueId> add_sum(std::size_t input, ValueId value);

  /// Returns the body's inputs and intermediate values, constants excluded, that the gradient nodes
  /// of `values` read. Ascending.
  std::vector<ValueId> read_by(const std::vector<ValueId>& values) const;
  /// Extracts the nodes between `inputs` and `outputs` as a separate graph.
  Graph part(const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) const;
  std::vector<ValueId> body_inputs() const;
  const std::vector<ValueId>& body_outputs() const { return body_outputs_; }

 private:
  bool is_own(ValueId value) const;

  Graph graph_;
  std::vector<Flow> flows_;
  std::vector<ValueId> body_outputs_;
  Differentiate differentiate_;
  std::size_t input_count_ = 0, node_bound_ = 0;
};

}  // namespace tenon::inline ops
