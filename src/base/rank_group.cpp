#include "base/rank_group.h"

#include "base/error.h"

namespace tenon::inline base {

RankGroup::RankGroup(Communicator& all, int size, int stride)
    : all_(all),
      size_(size),
      stride_(stride),
      rank_(all.rank() / stride % size),
      first_(all.rank() - rank_ * stride) {
  TENON_ASSERT(divides_evenly(all.size(), size, stride), "ranks come out even in groups");
}

void RankGroup::exchange(std::span<const std::span<const std::byte>> given,
                         std::span<const std::span<std::byte>> taken) {
  std::vector<std::span<const std::byte>> all_given(static_cast<std::size_t>(all_.size()));
  std::vector<std::span<std::byte>> all_taken(all_given.size());
  for (int k = 0; k < size_; ++k) {
    const auto rank = static_cast<std::size_t>(first_ + k * stride_);
    all_given[rank] = given[static_cast<std::size_t>(k)];
    all_taken[rank] = taken[static_cast<std::size_t>(k)];
  }
  all_.exchange(all_given, all_taken);
}

void RankGroup::all_gather(std::span<const std::byte> mine,
                           std::span<const std::span<std::byte>> all) {
  // it may have a faster implementation
  if (size_ == all_.size()) return all_.all_gather(mine, all);
  Communicator::all_gather(mine, all);
}

}  // namespace tenon::inline base
