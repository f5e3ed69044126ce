#pragma once

#include "passes/fold_scales/contraction.h"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace tenon::scales {

/// What becomes of the graph when one scale goes to where it is folded: found in full before
/// anything changes.
class Plan {
 public:
  Plan(const Graph& graph, std::int64_t max_copied_bytes)
      : graph_(graph), max_copied_bytes_(max_copied_bytes) {}

  /// Whether everything before the value can take the scale, so that the value comes out scaled.
  bool push_back(ValueId value, const Affine& affine);
  /// Whether everything behind the value can take the scale, if the value comes without it.
  bool push_on(ValueId value, const Affine& affine);
  /// Computes the new constants; false where a number leaves its type's range.
  bool prepare();
  /// Changes the graph, which is the one that was planned for. Gives nodes that are dead now and
  /// have lost an operand.
  std::vector<NodeId> commit(Graph& graph) const;

  /// Why the last question was answered with no.
  const std::string& why() const { return why_; }
  /// The contractions that take a part, in the order found.
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
  /// An add of a constant behind a node's first result.
  struct NewShift {
    NodeId node;
    Tensor value;
  };
  /// The node's result is its operand.
  struct Bypass {
    NodeId node;
    std::size_t operand;
  };
  using Change = std::variant<NewWeights, NewOperand, NewShift, Bypass>;

  bool refuse(std::string why);
  /// Refuses for a node, by the name of its result.
  bool refuse(NodeId node, std::string_view why);
  bool spend_step();
  bool may_copy(NodeId node, const WeightChange& change);
  bool either(const std::function<bool()>& first, const std::function<bool()>& second);
  bool pool_passes(NodeId node, const Affine& affine);
  bool homogeneous_passes(NodeId node, const Affine& affine);

  bool into_contraction(NodeId node, const Affine& affine);
  bool into_sum(NodeId node, const Affine& affine);
  bool into_constant_term(NodeId node, std::size_t operand, const Affine& affine);
  bool on_to_reader(NodeId reader, ValueId value, const Affine& affine);
  bool on_to_contraction(NodeId node, std::size_t operand, const Affine& affine);
  bool on_through_sum(NodeId node, std::size_t operand, const Affine& affine);
  bool add_shift(NodeId contraction, const std::vector<double>& scale,
                 const std::vector<double>& shift);

  const Graph& graph_;
  std::int64_t max_copied_bytes_;
  std::vector<Change> changes_;
  std::vector<NodeId> takers_;
  std::string why_;
  int steps_left_ = 32;  // far scales are rare, and looking far from each of many costs
};

}  // namespace tenon::scales
