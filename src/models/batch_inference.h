#pragma once

#include "ir/graph.h"

#include <optional>
#include <set>
#include <unordered_map>

namespace tenon::models {

/// The change of a batch: the extent that inputs had, and the one that they have now.
struct BatchChange {
  Dim before, after;
};

/// Type inference after the types of inputs changed. With a batch, shapes that a graph states for
/// the old batch follow: those of `reshape`, `expand`, `resize` and `center_crop_pad`; operands of
/// the old batch that do not depend on the inputs (class tokens, initial states, masks) are
/// expanded; the inputs of bodies take the types of their operands.
class BatchInference {
 public:
  /// `old_types`: types that changed inputs had before.
  BatchInference(Graph& graph, std::unordered_map<ValueId, Type> old_types,
                 std::optional<BatchChange> batch)
      : graph_(graph), old_types_(std::move(old_types)), batch_(std::move(batch)) {}

  /// Throws the Error of the first node that does not accept its operands' types.
  void run();
  /// Returns whether a `scan` iterates over the batch: that axis is time, not a batch.
  bool is_scanned() const { return is_scanned_; }

 private:
  using OldTypes = std::unordered_map<ValueId, Type>;

  bool is_changed(ValueId value) const { return value && old_types_.contains(value); }
  bool is_batch(const Dim& before, const Dim& after) const;
  std::optional<std::size_t> batch_axis(ValueId value) const;
  std::set<std::size_t> batch_axes_from_end(const Node& node) const;
  Dim outer_factor(ValueId value) const;
  void pass_on_outer_factor(const Node& node, ValueId result);
  void infer(NodeId id);
  void adapt_attributes(NodeId id);
  void adapt_reshape(NodeId id, std::size_t batch_axis);
  void adapt_aligned_shape(NodeId id, std::size_t batch_axis);
  void adapt_listed_axes(NodeId id, std::size_t batch_axis, std::string_view attr);
  void adapt_bodies(NodeId id, const std::vector<Graph>& bodies);
  void find_scanned_axes(const Node& node);
  bool has_old_state(const Node& node) const;
  bool expand_operands(NodeId id);
  ValueId expanded(ValueId value, std::size_t axis, NodeId before);
  ValueId one_sample(ValueId value, std::size_t axis, NodeId before);

  Graph& graph_;
  OldTypes old_types_;  // of values whose type or known elements changed
  std::optional<BatchChange> batch_;
  std::unordered_map<ValueId, Dim> outer_factors_;  // [7 * batch, 8]: 7; absent: 1
  bool is_scanned_ = false;
};

}  // namespace tenon::models
