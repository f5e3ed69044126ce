#pragma once

#include "ops/rank_sum.h"
#include "passes/train/stateful_graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon {

/// Where the states of one of several ranks lie. Each has two places, of which a step reads one and
/// writes the other. A piece that the rank updates, of a state that it also holds whole, lies
/// inside that: nobody has to copy it there.
class StatePlaces {
 public:
  /// `alignment`: of bytes, that whoever computes on the states asks for.
  StatePlaces(const StatefulGraph& step, int rank, int rank_count, std::size_t alignment);

  /// Of all that `allocate` takes.
  std::uint64_t bytes() const;
  void allocate(RankMemory& memory);

  /// By state. They keep the memory alive.
  const std::shared_ptr<std::byte>& now(std::size_t state) const { return now_[state]; }
  const std::shared_ptr<std::byte>& next(std::size_t state) const { return next_[state]; }
  /// What a step wrote is what the next one reads.
  void swap() { now_.swap(next_); }

 private:
  struct Place {
    std::size_t bytes = 0;
    std::size_t inside, offset = 0;  // of which state; itself: of none
  };
  std::vector<Place> places_;
  std::vector<std::shared_ptr<std::byte>> now_, next_;
};

}  // namespace tenon
