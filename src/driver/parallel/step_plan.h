#pragma once

#include "driver/parallel/cluster.h"
#include "passes/train/train.h"

#include <vector>

namespace tenon {

/// What a step of training takes of one rank, whatever the number of ranks: from the graph's own
/// stages after the passes, each fused node timed by arithmetic or memory.
class StepCosts {
 public:
  /// `model` has numbers for all extents, the batch of one rank.
  StepCosts(const Graph& model, TrainOptions options, const Cluster& cluster);

  struct Gradient {
    /// from the beginning of the step
    double bytes = 0, made_at_s = 0;
  };
  /// forward and backward
  double compute_s = 0;
  /// of all parameters, without
  double update_s = 0;
  /// what its kernels take before they begin
  double update_start_s = 0;
  /// in the order in which they are made
  std::vector<Gradient> gradients;
  double gradient_bytes = 0, parameter_bytes = 0, other_state_bytes = 0;
  /// of forward and backward, without a budget
  double arena_bytes = 0;
  /// What whole steps took beyond all that where they were measured: between them (data, calls),
  /// and where ranks meet. Nothing in an estimate.
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
  /// that a rank sends, by tier
  std::vector<double> link_bytes;
  /// in the device's memory, as far as that is said
  bool fits = true;
};

/// The fastest of whole or split states and of several sizes of buckets, among those that fit;
/// where none does, the smallest.
StepPlan best_plan(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count);
StepPlan plan_step(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count,
                   bool splits_states, double bucket_bytes);

}  // namespace tenon
