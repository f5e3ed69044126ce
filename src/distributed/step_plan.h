#pragma once

#include "distributed/cluster.h"
#include "passes/train/train.h"

#include <vector>

namespace tenon::distributed {

/// Cost model of a training step on one rank, independent of the number of ranks: derived from the
/// stages of the optimized graph, each fused node bound by arithmetic or memory.
class StepCosts {
 public:
  /// `model` must have static extents, with the batch of one rank.
  StepCosts(const Graph& model, passes::TrainOptions options, const Cluster& cluster);

  struct Gradient {
    /// since the start of the step
    double bytes = 0, made_at_s = 0;
  };
  /// forward and backward pass
  double compute_s = 0;
  /// update of all parameters on a single rank
  double update_s = 0;
  /// launch overhead of its kernels
  double update_start_s = 0;
  /// in the order of production
  std::vector<Gradient> gradients;
  double gradient_bytes = 0, parameter_bytes = 0, other_state_bytes = 0;
  /// of the forward and backward pass, without a budget
  double arena_bytes = 0;
  /// Measured overheads that the model does not explain: between steps (data loading, calls), and
  /// at synchronizations. Zero in an estimate.
  double between_s = 0, meeting_s = 0;
};

/// A step on a number of ranks.
struct StepPlan {
  std::int64_t ranks = 1;
  bool splits_states = false;
  double bucket_bytes = 0;
  double step_s = 0, compute_s = 0, communication_s = 0, waited_s = 0;
  /// of memory
  double bytes_per_rank = 0;
  /// bytes that a rank sends, by tier
  std::vector<double> link_bytes;
  /// fits the device's memory, if its size is known
  bool fits = true;
};

/// Returns the fastest plan among whole and split states and several bucket sizes that fits in
/// memory, or else the smallest one.
StepPlan best_plan(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count);
StepPlan plan_step(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count,
                   bool splits_states, double bucket_bytes);

}  // namespace tenon::distributed
