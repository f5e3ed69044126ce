#pragma once

#include "passes/fold_scales/contraction.h"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace tenon::passes::scales {

/// Changes to the graph that fold one scale. The whole plan is computed before the graph is
/// changed.
class ScalePlan {
 public:
  ScalePlan(const Graph& graph, std::int64_t max_copied_bytes)
      : graph_(graph), max_copied_bytes_(max_copied_bytes) {}

  /// Returns whether all producers of the value can absorb the scale, so that the value is computed
  /// scaled.
  bool push_back(ValueId value, const ChannelAffine& affine);
  /// Returns whether all consumers of the value can absorb the scale if the value stays unscaled.
  bool push_on(ValueId value, const ChannelAffine& affine);
  /// Computes the new constants. Returns false if a number leaves the range of its type.
  bool prepare();
  /// Applies the changes to the graph that was planned for. Returns the dead nodes that lost an
  /// operand.
  std::vector<NodeId> commit(Graph& graph) const;

  /// Returns the reason of the last refusal.
  const std::string& why() const { return why_; }
  /// Returns the contractions that absorb a part of the scale, in the order found.
  const std::vector<NodeId>& takers() const { return takers_; }

 private:
  struct NewWeights {
    WeightChange change;
    Constant value;
  };
  struct NewOperand {
    NodeId node;
    std::size_t operand;
    Constant value;
  };
  /// An add of a constant after a node's first result.
  struct NewShift {
    NodeId node;
    Tensor value;
  };
  /// Replaces the node's result by its operand.
  struct Bypass {
    NodeId node;
    std::size_t operand;
  };
  using Change = std::variant<NewWeights, NewOperand, NewShift, Bypass>;

  bool refuse(std::string why);
  /// Refuses on behalf of a node, named by its result.
  bool refuse(NodeId node, std::string_view why);
  bool spend_step();
  bool may_copy(NodeId node, const WeightChange& change);
  bool either(const std::function<bool()>& first, const std::function<bool()>& second);
  bool pool_passes(NodeId node, const ChannelAffine& affine);
  bool homogeneous_passes(NodeId node, const ChannelAffine& affine);

  bool into_contraction(NodeId node, const ChannelAffine& affine);
  bool into_sum(NodeId node, const ChannelAffine& affine);
  bool into_constant_term(NodeId node, std::size_t operand, const ChannelAffine& affine);
  bool on_to_reader(NodeId reader, ValueId value, const ChannelAffine& affine);
  bool on_to_contraction(NodeId node, std::size_t operand, const ChannelAffine& affine);
  bool on_through_sum(NodeId node, std::size_t operand, const ChannelAffine& affine);
  bool add_shift(NodeId contraction, const std::vector<double>& scale,
                 const std::vector<double>& shift);

  const Graph& graph_;
  std::int64_t max_copied_bytes_;
  std::vector<Change> changes_;
  std::vector<NodeId> takers_;
  std::string why_;
  int steps_left_ = 32;  // bounds the search: distant scales are rare, and every scale pays for it
};

}  // namespace tenon::passes::scales
