#pragma once

#include "base/communicator.h"
#include "distributed/stage_program.h"
#include "distributed/stages.h"
#include "distributed/step_memory.h"
#include "passes/train/stateful_graph.h"

#include <memory>
#include <vector>

namespace tenon::distributed {

/// Communication times of a step.
struct CommunicationTimes {
  /// exchange and reduction
  double busy_s = 0;
  /// of which not overlapped with computation
  double waited_s = 0;
  /// bytes that this rank sent
  std::uint64_t bytes = 0;
  double hidden_share() const { return waited_s < busy_s ? 1 - waited_s / busy_s : 0; }
};

/// Options of a step over ranks.
struct DistributedStepOptions {
  /// a multiple of the number of groups of `tensor_ranks`
  std::int64_t micro_batch_count = 1;
  int thread_count = 0;
  std::size_t bucket_bytes = std::size_t{4} << 20;
  std::int64_t tensor_ranks = 1;
  /// ZeRO stage 2: gradients that ranks keep pieces of share memory, each from its first write
  /// until it is sent.
  bool splits_gradients = false;
};

/// One data-parallel training step. The batch comes in parts of equal size; rank k of n processes
/// parts k, k + n, …, and reductions over ranks add in the order of the parts, so that results are
/// bit-identical for any number of ranks. All-reduces run in buckets on a separate thread and
/// overlap with the backward pass. With tensor parallelism, the ranks of a group process the same
/// part and communicate within it.
class DistributedStep {
 public:
  /// `step` and `ranks` must outlive it. Computes in the memory of `place`, which has the same
  /// ranks.
  DistributedStep(const passes::StatefulGraph& step, Communicator& ranks,
                  const DistributedStepOptions& options, StepMemory place);
  ~DistributedStep();

  /// `parts`: the data inputs except `kKey`, for each part of this rank. Reads the states at `now`
  /// and writes those at `next`, both in memory of the place. Returns the data outputs.
  std::vector<Tensor> run(const std::vector<std::vector<Tensor>>& parts,
                          std::span<const std::byte* const> now, std::span<std::byte* const> next,
                          std::int64_t step_number);

  /// Returns the number of ranks that had set `flag` in their last step; it travels with the step's
  /// sums.
  void set_flag(bool flag);
  std::int64_t flags() const;

  /// Releases the arenas until the next run.
  void rest();

  const StepMemory& place() const;
  const Program& program() const;
  std::uint64_t arena_bytes() const;
  /// of a stage
  std::uint64_t largest_arena_bytes() const;
  std::size_t bucket_count() const;
  /// Memory held in addition to the stages' arenas: gradients, gathered parameters, and values
  /// between stages.
  std::uint64_t held_bytes() const;
  CommunicationTimes times() const;
  /// Returns a text that differs if two ranks would run different code.
  std::string code_hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::distributed
