#pragma once

#include "ops/families/rank_sum.h"
#include "passes/train/stateful_graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::distributed {

/// Memory of the states of one rank. Each state is double-buffered: a step reads one buffer and
/// writes the other. A piece that the rank updates, of a state that it also holds whole, is placed
/// inside the whole, which avoids a copy.
class StateBuffers {
 public:
  /// `alignment`: in bytes, as the executor requires.
  StateBuffers(const passes::StatefulGraph& step, int rank, int rank_count, std::size_t alignment);

  /// Total size of `allocate`.
  std::uint64_t bytes() const;
  void allocate(RankMemory& memory);

  /// By state. The pointers keep the memory alive.
  const std::shared_ptr<std::byte>& now(std::size_t state) const { return now_[state]; }
  const std::shared_ptr<std::byte>& next(std::size_t state) const { return next_[state]; }
  /// Swaps the buffers after a step.
  void swap() { now_.swap(next_); }

 private:
  struct Slot {
    std::size_t bytes = 0;
    // index of the containing state; its own index if it is not contained
    std::size_t inside, offset = 0;
  };
  std::vector<Slot> places_;
  std::vector<std::shared_ptr<std::byte>> now_, next_;
};

}  // namespace tenon::distributed
