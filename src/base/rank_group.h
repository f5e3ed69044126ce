#pragma once

#include "base/communicator.h"

namespace tenon::inline base {

/// A sub-communicator of `size` ranks, `stride` apart. Ranks numbered row by row form the rows
/// (stride 1) and columns of a mesh. Every rank belongs to one group.
class RankGroup : public Communicator {
 public:
  /// `all` must outlive the group. The number of ranks must divide evenly.
  RankGroup(Communicator& all, int size, int stride);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override;
  using Communicator::all_gather;
  void all_gather(std::span<const std::byte> mine,
                  std::span<const std::span<std::byte>> all) override;

  std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) override {
    return all_.allocate_visible(bytes);
  }
  bool may_see() const override { return all_.may_see(); }
  MemoryWindow window_of(std::span<const std::byte> mine) const override {
    return all_.window_of(mine);
  }
  std::span<const std::byte> seen(int rank, const MemoryWindow& window) override {
    return all_.seen(first_ + rank * stride_, window);
  }

  static bool divides_evenly(int all, int size, int stride) {
    return size >= 1 && stride >= 1 && all % (size * stride) == 0;
  }

 private:
  Communicator& all_;
  int size_, stride_, rank_, first_;
};

}  // namespace tenon::inline base
