#pragma once

#include "ir/graph.h"
#include "tasks/task_list.h"

#include <set>
#include <string>
#include <unordered_map>

namespace tenon::codegen {

/// Returns why no kernel computes a node; empty if a kernel does. Examines the node in isolation.
std::string kernel_refusal(const Graph& graph, NodeId node);

/// Maps the values and symbols of one graph, the model's or a body's, to buffers and symbols of a
/// task list. Bodies have their own symbol names: the same name in two graphs may denote two
/// symbols of the list, or a dim known by another name.
class GraphScope {
 public:
  GraphScope(const Graph& graph, TaskList& list) : graph_(graph), list_(list) {}

  const Graph& graph() const { return graph_; }
  TaskList& list() { return list_; }

  /// Views map to their base buffer, as kernels read them.
  std::unordered_map<ValueId, std::uint32_t> buffers;
  /// Buffers of external values under their own extents.
  std::unordered_map<ValueId, std::uint32_t> wholes;
  /// Output index of the model's outputs; the first one if a value is repeated.
  std::unordered_map<ValueId, std::uint32_t> ports;

  /// Converts a dim of the graph to symbols of the list.
  Dim in_list(const Dim& dim);
  Dims in_list(const Dims& dims);
  /// Returns whether all symbols that determine a node's work are bound before it runs.
  bool knows_extents(NodeId node) const;
  /// Returns whether the symbols of a dim are bound.
  bool is_resolved(const Dim& dim) const;
  /// Binds the graph's symbol to a dim of the list.
  void alias(const std::string& symbol, const Dim& dim);
  bool has(const std::string& symbol) const { return bound_.contains(symbol); }

  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims,
                           Lifetime lifetime);
  /// Adds a buffer for a host-computed value. Planned in the arena if its shape is static, unless
  /// `is_held`: then the operator's own allocation is kept.
  std::uint32_t add_value(ValueId value, bool is_held);
  /// Binds the symbols that stand alone as dims of the type to axes of the buffer.
  void bind(const Type& type, std::uint32_t buffer);
  /// Returns the buffer of a value under the value's own extents.
  std::uint32_t whole(ValueId value);
  /// The same under the value's own name: an output keeps its name if it equals another value.
  std::uint32_t named_whole(ValueId value);
  /// Returns whether all extents are known before the first task runs.
  bool is_planned(const Dims& dims_in_list) const;

 private:
  std::uint32_t add_view(std::uint32_t buffer, const std::string& name, Dims dims);
  std::string free_symbol(const std::string& name) const;
  void name(const Dim& dim);

  const Graph& graph_;
  TaskList& list_;
  DimBindings names_;            // By symbol of the graph: its dim in the list.
  std::set<std::string> bound_;  // Bound symbols of the graph.
};

}  // namespace tenon::codegen
