#pragma once

#include "base/communicator.h"
#include "ir/graph.h"
#include "ops/rank_sum.h"
#include "runtime/executable.h"

#include <functional>
#include <memory>
#include <string>

namespace tenon {

/// Where ranks compute their steps: what compiles for it, its memory, and who carries what lies
/// there from rank to rank.
struct StepPlace {
  std::function<Program(Graph graph)> compile;
  /// null: programs find theirs
  Executable::MakeDevice make_device = nullptr;
  std::shared_ptr<RankMemory> memory;
  std::shared_ptr<Communicator> ranks;
  bool is_device = false;
  /// about a device, for users: "NCCL 2.27.3 on NVIDIA H200"
  std::string words;

  std::shared_ptr<const Executable> load(Program program) const;
};

/// The processor, where `ranks` exchange by themselves.
StepPlace host_place(Communicator& ranks);

/// A GPU. `ranks` outlive it; they meet by NCCL, or where there is one alone that nobody launched
/// as a rank (`is_rank`), not at all. Throws Error (Device) where a driver or a library is missing.
StepPlace cuda_place(Communicator& ranks, bool is_rank, const std::string& target,
                     const std::string& precision);

/// Memory of a device on which sums are programs of our own, so that their bits are those of the
/// processor.
class DeviceRankMemory : public RankMemory {
 public:
  /// Compiles and loads as the place says, but for its memory and ranks.
  explicit DeviceRankMemory(StepPlace place);
  ~DeviceRankMemory() override;
  void add_in_order(DType dtype, std::span<std::byte> y,
                    std::span<const std::span<const std::byte>> terms) override;

 private:
  struct Sums;
  std::unique_ptr<Sums> sums_;
};

}  // namespace tenon
