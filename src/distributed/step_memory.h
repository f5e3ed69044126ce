#pragma once

#include "base/communicator.h"
#include "ir/graph.h"
#include "ops/families/rank_sum.h"
#include "runtime/executable.h"
#include "target/target_spec.h"

#include <functional>
#include <memory>
#include <string>

namespace tenon::distributed {

/// The device or processor on which ranks run their steps: its compiler, its memory, and its
/// communicator.
struct StepMemory {
  std::function<Program(Graph graph)> compile;
  /// null: programs choose their device
  Executable::MakeDevice make_device = nullptr;
  std::shared_ptr<RankMemory> memory;
  std::shared_ptr<Communicator> ranks;
  bool is_device = false;
  /// description of a device for users: "NCCL 2.27.3 on NVIDIA H200"
  std::string words;

  std::shared_ptr<const Executable> load(Program program) const;
};

/// Returns the place for the processor, which communicates through `ranks` directly.
StepMemory host_step_memory(Communicator& ranks);

/// Returns the place for a GPU. `ranks` must outlive it; ranks communicate by NCCL, and a single
/// process without a launcher (`is_rank`) does not communicate. Throws Error (Device) if a driver
/// or a library is missing.
StepMemory cuda_step_memory(Communicator& ranks, bool is_rank, const TargetSpec& target);

/// Device memory with reductions by compiled programs, which makes them bit-identical to the
/// processor's.
class DeviceRankMemory : public RankMemory {
 public:
  /// Takes the compiler and loader of the place, but not its memory and ranks.
  explicit DeviceRankMemory(StepMemory place);
  ~DeviceRankMemory() override;
  void add_in_order(DType dtype, std::span<std::byte> y,
                    std::span<const std::span<const std::byte>> terms) override;

 private:
  struct Sums;
  std::unique_ptr<Sums> sums_;
};

}  // namespace tenon::distributed
