#include "memory/peak.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::memory {
namespace {

constexpr std::size_t kNamed = 10;

std::string name_of(const ArenaBlock& storage, const Plan& plan, const Problem& problem) {
  if (storage.instances.empty())
    return "workspace of " + problem.items[plan.events[storage.begin].index].name;
  return problem.values[storage.instances.back().value].name;
}

}  // namespace

Peak peak_of(const Plan& plan, const Problem& problem) {
  std::vector<std::int64_t> live(plan.events.size() + 1, 0);
  for (const ArenaBlock& storage : plan.blocks) {
    live[storage.begin] += static_cast<std::int64_t>(storage.bytes);
    live[storage.end] -= static_cast<std::int64_t>(storage.bytes);
  }
  for (std::size_t e = 1; e < live.size(); ++e) live[e] += live[e - 1];
  Peak peak;
  peak.event = static_cast<std::uint32_t>(std::ranges::max_element(live) - live.begin());
  peak.bytes = static_cast<std::uint64_t>(live[peak.event]);
  const auto begin =
      plan.events.begin() + std::min<std::ptrdiff_t>(peak.event, std::ssize(plan.events));
  const auto run = std::find_if(begin, plan.events.end(),
                                [](const Event& event) { return event.kind == Event::Kind::Run; });
  if (run != plan.events.end()) peak.item = problem.items[run->index].name;
  for (const ArenaBlock& storage : plan.blocks) {
    if (storage.begin <= peak.event && peak.event < storage.end && storage.bytes > 0)
      peak.alive.push_back({name_of(storage, plan, problem), storage.bytes});
  }
  std::ranges::stable_sort(peak.alive, std::greater(), &Peak::Alive::bytes);
  return peak;
}

std::string text_of(const Peak& peak) {
  std::string text =
      concat("step '", peak.item, "', where ", format_bytes(peak.bytes), " are alive");
  for (std::size_t k = 0; k < peak.alive.size() && k < kNamed; ++k) {
    text +=
        concat(k == 0 ? ": '" : ", '", peak.alive[k].name, "' ", format_bytes(peak.alive[k].bytes));
  }
  return text;
}

}  // namespace tenon::memory
