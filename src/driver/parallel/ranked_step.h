#pragma once

#include "base/communicator.h"
#include "driver/parallel/stage_program.h"
#include "driver/parallel/stages.h"
#include "driver/parallel/step_place.h"
#include "passes/train/stateful_graph.h"

#include <memory>
#include <vector>

namespace tenon {

/// Where the time of communication went.
struct CommunicationTimes {
  /// exchanging and adding up
  double busy_s = 0;
  /// of that, while nothing was computed
  double waited_s = 0;
  /// that this rank sent
  std::uint64_t bytes = 0;
  double hidden_share() const { return waited_s < busy_s ? 1 - waited_s / busy_s : 0; }
};

/// How a step over ranks is run.
struct RankedStepOptions {
  /// a multiple of the number of groups of `tensor_ranks`
  std::int64_t part_count = 1;
  int thread_count = 0;
  std::size_t bucket_bytes = std::size_t{4} << 20;
  std::int64_t tensor_ranks = 1;
  /// Gradients that ranks keep pieces of share memory, each while it is made and sent.
  bool splits_gradients = false;
};

/// One step of training over ranks. The batch comes in parts of one size; rank k of n works on
/// parts k, k + n, … and what the graph sums over ranks is added up in the order of the parts, so
/// that the number of ranks changes no bit. Sums begin while the backward half still runs, in
/// buckets, on a thread of their own. Where tensors are split over groups of ranks, those of a
/// group work on the same part, and meet within it.
class RankedStep {
 public:
  /// `step` and `ranks` outlive it. What ranks compute lies at `place`, whose ranks are the same.
  RankedStep(const StatefulGraph& step, Communicator& ranks, const RankedStepOptions& options,
             StepPlace place);
  ~RankedStep();

  /// `parts`: the inputs that are no state's and not `kKey`, for each part of this rank. Reads the
  /// states at `now` and writes those at `next`, memory of the place's. Gives the other outputs.
  std::vector<Tensor> run(const std::vector<std::vector<Tensor>>& parts,
                          std::span<const std::byte* const> now, std::span<std::byte* const> next,
                          std::int64_t step_number);

  /// On how many ranks `flag` was set when they last ran a step; it travels with its sums.
  void set_flag(bool flag);
  std::int64_t flags() const;

  /// Gives the arenas back until the next run.
  void rest();

  const StepPlace& place() const;
  const Program& program() const;
  std::uint64_t arena_bytes() const;
  /// of a stage
  std::uint64_t largest_arena_bytes() const;
  std::size_t bucket_count() const;
  /// What it holds beside the stages' arenas: gradients, parameters while they are whole, and what
  /// stages hand on.
  std::uint64_t held_bytes() const;
  CommunicationTimes times() const;
  /// A text that differs where two ranks would run different code.
  std::string code_hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
