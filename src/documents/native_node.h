#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tenon::documents {

/// Nodes that a writer must write as native Tenon nodes, even if the format has an equivalent.
struct NativeNodes {
  std::unordered_set<NodeId> nodes;
  /// also state the types of inputs, if the format supports it
  bool are_types_stated = false;

  bool contains(NodeId id) const { return nodes.contains(id); }
};

/// A native Tenon node in a foreign format: a graph with that node, in text form on one line. The
/// graph's inputs and outputs are those of the record that carries it, in order.
struct NativeNode {
  /// operands, each once, except for constants inside the text
  std::vector<ValueId> inputs;
  /// used results
  std::vector<ValueId> outputs;
  std::string text;
};
/// `name_of` returns the names of inputs in the text; by default x0, x1, ….
NativeNode native_node(const Graph& graph, NodeId node,
                       const std::function<std::string(ValueId)>& name_of = {});

/// Prints a graph's text form on one line.
std::string one_line(const Graph& graph);
/// Parses such a text. Throws Error for other contents than one node and its constants.
Graph parse_native(std::string_view text);
/// Returns the native node of the record.
NodeId node_of_native(const Graph& record);
/// Appends the record's node with these operands. Returns results in the order of the record's
/// outputs. Throws Error if the operands' types differ from the record's.
std::vector<Var> build_native(const Graph& record, Builder& build, std::span<const Var> inputs);

/// Returns whether a constant is part of its reader's text: scalars, shapes and other short lists
/// of integers. Lists of floats count as weights, and large lists are too long for a text.
bool fits_text(const Graph& graph, ValueId constant);

/// max_pool_gradient -> MaxPoolGradient
std::string camel_case(std::string_view op);

}  // namespace tenon::documents
