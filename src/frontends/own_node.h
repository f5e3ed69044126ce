#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tenon {

/// What a writer has to put down as Tenon's own, though the format may have a word for it.
struct OwnNodes {
  std::unordered_set<NodeId> nodes;
  /// those of inputs, where the format has a way to
  bool are_types_stated = false;

  bool contains(NodeId id) const { return nodes.contains(id); }
};

/// A node as every format carries an operator of Tenon's own: alone in a graph, in Tenon's text
/// form on one line. The graph's inputs and outputs are those of the record that carries it, in
/// order.
struct OwnNode {
  /// operands, each once, but for constants that stand in the text
  std::vector<ValueId> inputs;
  /// results that are wanted
  std::vector<ValueId> outputs;
  std::string text;
};
/// `name_of` says what the text calls an input; x0, x1, … where it is not given.
OwnNode own_node(const Graph& graph, NodeId node,
                 const std::function<std::string(ValueId)>& name_of = {});

/// A graph's text form on one line.
std::string one_line(const Graph& graph);
/// Reads such a text. Throws Error where it is not one node and its constants.
Graph parse_own(std::string_view text);
/// The node among the record's nodes.
NodeId node_of_own(const Graph& record);
/// Appends the record's node, reading these values. Results in the order of its outputs. Throws
/// Error where the values are not of the types that the record says.
std::vector<Var> build_own(const Graph& record, Builder& build, std::span<const Var> inputs);

/// Whether a constant is part of the text of what reads it: numbers, shapes and other short lists
/// of integers. A list of floats is a weight, and large lists are no text.
bool stands_in_text(const Graph& graph, ValueId constant);

/// max_pool_gradient -> MaxPoolGradient
std::string camel_case(std::string_view op);

}  // namespace tenon
