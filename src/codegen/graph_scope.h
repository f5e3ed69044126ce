#pragma once

#include "ir/graph.h"
#include "tasks/task_list.h"

#include <set>
#include <string>
#include <unordered_map>

namespace tenon::codegen {

/// Why no kernel computes a node; empty where one does. Asks about the node alone.
std::string kernel_refusal(const Graph& graph, NodeId node);

/// The values and the symbols of one graph, the model's or a body's, as a list of tasks has them.
/// Bodies have names of their own: the same symbol in two graphs may be two of the list, or one
/// that is known there by another name.
class GraphScope {
 public:
  GraphScope(const Graph& graph, TaskList& list) : graph_(graph), list_(list) {}

  const Graph& graph() const { return graph_; }
  TaskList& list() { return list_; }

  /// kernels read a view in what it is of
  std::unordered_map<ValueId, std::uint32_t> buffers;
  /// of values that come from outside, with their own extents
  std::unordered_map<ValueId, std::uint32_t> wholes;
  /// of the model's outputs, the first of each
  std::unordered_map<ValueId, std::uint32_t> ports;

  /// A dim of the graph in the list's symbols.
  Dim in_list(const Dim& dim);
  Dims in_list(const Dims& dims);
  /// Whether the run knows every symbol that decides about a node's work before it does it.
  bool knows_extents(NodeId node) const;
  /// Whether it knows those in a dim of the graph.
  bool is_told(const Dim& dim) const;
  /// The symbol of the graph is this dim of the list.
  void alias(const std::string& symbol, const Dim& dim);
  bool has(const std::string& symbol) const { return told_.contains(symbol); }

  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims, Life life);
  /// A buffer for a value that is no kernel's result: laid out ahead where its extents are known
  /// then, unless it is to be held as it is made.
  std::uint32_t add_value(ValueId value, bool is_held);
  /// From here on, whoever has the buffer knows the symbols that stand alone in its type.
  void tell(const Type& type, std::uint32_t buffer);
  /// The buffer of a value with the value's own extents.
  std::uint32_t whole(ValueId value);
  /// Whether all of its extents are known before the first task runs.
  bool is_planned(const Dims& dims_in_list) const;

 private:
  std::string free_symbol(const std::string& name) const;
  void name(const Dim& dim);

  const Graph& graph_;
  TaskList& list_;
  DimBindings names_;           // the list's dim for each of the graph's symbols that has come up
  std::set<std::string> told_;  // those of them that a run knows
};

}  // namespace tenon::codegen
