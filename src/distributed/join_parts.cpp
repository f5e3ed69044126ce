#include "distributed/join_parts.h"

#include "base/rank_group.h"

#include <algorithm>
#include <vector>

namespace tenon::distributed {
namespace {

struct PartRange {
  std::size_t begin = 0, size = 0;
};

PartRange range_of(const JoinedParts& one, int rank) {
  const std::size_t begin =
      std::min(one.whole_bytes, static_cast<std::size_t>(rank) * one.part_bytes);
  return {begin, std::min(one.part_bytes, one.whole_bytes - begin)};
}

// Within one group of ranks.
void join_in_group(std::span<const JoinedParts> joined, RankGroup& group, RankMemory& memory) {
  const int mine = group.rank();
  Communicator::Shown shown;
  for (const JoinedParts& one : joined) shown.emplace_back(one.from, range_of(one, mine).size);
  if (const auto seen = group.show(shown)) {
    for (std::size_t k = 0; k < joined.size(); ++k) {
      for (int rank = 0; rank < group.size(); ++rank) {
        const PartRange range = range_of(joined[k], rank);
        const std::byte* from =
            rank == mine ? joined[k].from : (*seen)[static_cast<std::size_t>(rank)][k].data();
        memory.copy(joined[k].to + range.begin, from, range.size);
      }
    }
    return group.hide();
  }
  for (std::size_t k = 0; k < joined.size(); ++k) {
    std::vector<std::span<std::byte>> all;
    for (int rank = 0; rank < group.size(); ++rank) {
      const PartRange range = range_of(joined[k], rank);
      all.emplace_back(joined[k].to + range.begin, range.size);
    }
    group.all_gather(shown[k], all);
  }
}

}  // namespace

void join_parts(std::span<const JoinedParts> joined, Communicator& ranks, RankMemory& memory) {
  while (!joined.empty()) {
    const auto other = std::ranges::find_if(joined, [&](const JoinedParts& one) {
      return one.ranks != joined.front().ranks || one.stride != joined.front().stride;
    });
    const auto count = static_cast<std::size_t>(other - joined.begin());
    RankGroup group(ranks, joined.front().ranks, joined.front().stride);
    join_in_group(joined.first(count), group, memory);
    joined = joined.subspan(count);
  }
}

}  // namespace tenon::distributed
