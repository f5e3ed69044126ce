#pragma once

#include "base/communicator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

/// The processes that a launcher (`mpirun`, `srun`) started together, by Open MPI's library, which
/// is loaded here and nowhere else. Every rank tells the next one that it lives; one that died or
/// does not answer ends all of them within ten seconds, with its name and its last step.
class MpiRanks : public Communicator {
 public:
  /// Throws Error (Device) where there is no such library, (Usage) where a rank runs another
  /// program.
  MpiRanks();
  /// Waits for the others, unless an exception is under way or `abort` was called.
  ~MpiRanks() override;

  int rank() const override;
  int size() const override;
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override;

  std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) override;
  bool may_see() const override;
  MemoryWindow window_of(std::span<const std::byte> mine) const override;
  std::span<const std::byte> seen(int rank, const MemoryWindow& window) override;

  /// What others are told of this rank should it die.
  void set_step(std::int64_t step);
  /// Whether the launcher or a user wants all ranks to end.
  static bool is_asked_to_end();
  /// Ends all ranks with an exit code. Where all of them fail alike, one message is enough: whoever
  /// comes first prints its own.
  [[noreturn]] void abort(int exit_code);

  struct State;

 private:
  void require_one_program(const std::vector<std::string>& programs) const;
  void try_seeing();
  std::unique_ptr<State> state_;
};

/// Whether a launcher started this process.
bool is_launched();
/// How many processes the launcher started, as its environment says; 1 without one.
int launched_rank_count();
/// How many of them run on this machine, as far as the launcher says.
int ranks_on_machine();

}  // namespace tenon
