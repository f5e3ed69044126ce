#pragma once

#include "ir/graph.h"

#include <vector>

namespace tenon {

/// Types that follow what became more precise, for a walk over the nodes in their order: whoever
/// learns something marks the readers, and a marked node is inferred again when the walk comes to
/// it. Where an extent that only data seemed to tell is known now, its symbol goes from later
/// attributes, too.
class Reinference {
 public:
  explicit Reinference(Graph& graph) : graph_(graph) {}

  void mark(NodeId id);
  void mark_readers(ValueId value);
  bool is_done() const { return marked_count_ == 0; }

  /// Infers the node again if it is marked; its readers are where a type or known elements changed.
  void refresh(NodeId id);
  /// Walks on from a node, itself included, until nothing is marked.
  void refresh_from(NodeId id);

 private:
  void learn(const Type& before, const Type& after);
  void apply_learned(NodeId id);

  Graph& graph_;
  DimBindings learned_;  // what symbols of data turned out to be
  std::vector<bool> is_marked_;
  std::size_t marked_count_ = 0;
};

}  // namespace tenon
