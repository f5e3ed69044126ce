#include "memory/search.h"

#include <algorithm>
#include <numeric>

namespace tenon::memory {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

std::uint64_t live_bytes(const Problem& problem, bool in_place) {
  return max_live_bytes(arena_buffers(lifetimes_of(problem, plain_events(problem), in_place)));
}

Problem permuted(const Problem& problem, const std::vector<std::uint32_t>& order) {
  Problem result = problem;
  for (std::size_t k = 0; k < order.size(); ++k) result.items[k] = problem.items[order[k]];
  return result;
}

// Items that make more than they let go, each moved to just before the first that reads what it
// makes.
std::vector<std::uint32_t> delayed(const Problem& problem) {
  const std::size_t count = problem.items.size();
  std::vector<std::uint32_t> last_reader(problem.values.size(), kNone);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t v : problem.items[i].reads) last_reader[v] = i;
  }
  // From the end: what waits goes along with the first of its readers, wherever that goes.
  std::vector<std::uint32_t> place(count), first_reader(problem.values.size(), kNone);
  for (std::uint32_t i = static_cast<std::uint32_t>(count); i-- > 0;) {
    const Item& item = problem.items[i];
    std::uint64_t made = 0, freed = 0;
    std::uint32_t first = kNone;
    for (std::uint32_t v : item.makes) {
      made += problem.values[v].bytes;
      first = std::min(first, first_reader[v]);
    }
    place[i] = first;
    for (std::uint32_t v : item.reads) freed += last_reader[v] == i ? problem.values[v].bytes : 0;
    if (made <= freed || first == kNone) place[i] = i;
    for (std::uint32_t v : item.reads) first_reader[v] = std::min(first_reader[v], place[i]);
  }
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t x, std::uint32_t y) { return place[x] < place[y]; });
  return order;
}

}  // namespace

Problem reordered(const Problem& problem, bool in_place) {
  Problem result = permuted(problem, delayed(problem));
  return live_bytes(result, in_place) <= live_bytes(problem, in_place) ? result : problem;
}

}  // namespace tenon::memory
