#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon::passes {

/// Incremental type inference during a walk over the nodes in order. A change marks the readers,
/// and a marked node is inferred again when the walk reaches it. A data-dependent symbol whose
/// extent becomes known is also substituted in later attributes.
class Reinference {
 public:
  explicit Reinference(Graph& graph) : graph_(graph) {}

  void mark(NodeId id);
  void mark_readers(ValueId value);
  bool is_done() const { return marked_count_ == 0; }

  /// Infers the node again if it is marked; marks its readers if a type or known elements changed.
  void refresh(NodeId id);
  /// Walks on from a node, itself included, until no node is marked.
  void refresh_from(NodeId id);

 private:
  void learn(const Type& before, const Type& after);
  void apply_learned(NodeId id);

  Graph& graph_;
  DimBindings learned_;  // values of data-dependent symbols
  std::vector<bool> is_marked_;
  std::size_t marked_count_ = 0;
};

}  // namespace tenon::passes
