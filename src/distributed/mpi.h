#pragma once

#include "base/communicator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon::distributed {

/// MPI communicator: the processes that a launcher (`mpirun`, `srun`) started together, through
/// Open MPI's library, which is loaded at run time. Every rank sends heartbeats to the next one; a
/// rank that died or stopped responding ends all of them within ten seconds, with a message of its
/// name and last step.
class MpiRanks : public Communicator {
 public:
  /// Throws Error (Device) if the library is missing, (Usage) if a rank runs a different program.
  MpiRanks();
  /// Waits for the other ranks, unless an exception is being handled or `abort` was called.
  ~MpiRanks() override;

  int rank() const override;
  int size() const override;
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override;

  std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) override;
  bool may_see() const override;
  MemoryWindow window_of(std::span<const std::byte> mine) const override;
  std::span<const std::byte> seen(int rank, const MemoryWindow& window) override;

  /// Sets the step that other ranks report if this rank dies.
  void set_step(std::int64_t step);
  /// Returns whether the launcher or a user has asked all ranks to end.
  static bool is_stop_requested();
  /// Terminates all ranks with an exit code. If all of them fail alike, only the first message is
  /// printed.
  [[noreturn]] void abort(int exit_code);

  struct State;

 private:
  void require_one_program(const std::vector<std::string>& programs) const;
  void try_seeing();
  std::unique_ptr<State> state_;
};

/// Returns whether a launcher started this process.
bool is_launched();
/// Returns the number of processes from the launcher's environment; 1 without a launcher.
int launched_rank_count();
/// Returns the number of processes on this machine, if the launcher provides it.
int ranks_on_machine();

}  // namespace tenon::distributed
