#include "memory/lifetimes.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::memory {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

struct ValueLifetime {
  Instance instance;
  std::uint32_t end = 0;
  // Its copy may run as late as its last reader, so its storage is not reused in place.
  bool is_copied_out = false;
};

}  // namespace

std::vector<ArenaBlock> lifetimes_of(const Problem& problem, std::span<const Event> events,
                                     bool in_place) {
  std::vector<ValueLifetime> lives;
  std::vector<ArenaBlock> workspaces;
  std::vector<std::uint32_t> current(problem.values.size(), kNone);
  std::vector<std::uint32_t> leaving(problem.values.size(), kNone);
  struct InPlacePair {
    std::uint32_t event, result, operand;  // Indices of lives.
  };
  std::vector<InPlacePair> sharings;
  const auto use = [&](std::uint32_t value, std::uint32_t event) {
    TENON_ASSERT(current[value] != kNone, "a plan makes a value before it reads it");
    lives[current[value]].end = event + 1;
    return current[value];
  };
  const auto make = [&](std::uint32_t value, std::uint32_t event) {
    current[value] = static_cast<std::uint32_t>(lives.size());
    lives.push_back({{value, event}, event + 1, false});
  };
  for (std::uint32_t e = 0; e < events.size(); ++e) {
    const Event& event = events[e];
    switch (event.kind) {
      case Event::Kind::Run: {
        const Item& item = problem.items[event.index];
        for (std::uint32_t v : item.reads) use(v, e);
        std::vector<std::uint32_t> operands;
        for (const auto& [result, operand] : item.may_share) operands.push_back(current[operand]);
        for (std::uint32_t v : item.makes) make(v, e);
        for (std::size_t k = 0; k < operands.size(); ++k) {
          sharings.push_back({e, current[item.may_share[k].first], operands[k]});
        }
        if (const std::uint64_t bytes = item.alternatives[event.alternative].workspace_bytes) {
          workspaces.push_back({bytes, 0, e, e + 1, {}});
        }
        break;
      }
      case Event::Kind::Out:
        leaving[event.index] = use(event.index, e);
        lives[current[event.index]].is_copied_out = true;
        break;
      case Event::Kind::Free:
        lives[leaving[event.index]].end = std::max(lives[leaving[event.index]].end, e);
        break;
      case Event::Kind::In:
        make(event.index, e);
        break;
    }
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].is_output && current[v] != kNone) {
      lives[current[v]].end = static_cast<std::uint32_t>(events.size());
    }
  }

  // Assigns a storage to each life; an in-place result continues the storage of its operand.
  std::vector<std::uint32_t> successor(lives.size(), kNone);
  std::vector<char> has_predecessor(lives.size(), 0);
  for (const InPlacePair& sharing : sharings) {
    // An output stays live to the end.
    const bool dies_here = lives[sharing.operand].end == sharing.event + 1 &&
                           !problem.values[lives[sharing.operand].instance.value].is_output;
    if (!in_place || !dies_here || lives[sharing.operand].is_copied_out) continue;
    if (successor[sharing.operand] != kNone) continue;
    if (has_predecessor[sharing.result] != 0) continue;
    successor[sharing.operand] = sharing.result;
    has_predecessor[sharing.result] = 1;
  }
  std::vector<ArenaBlock> blocks;
  for (std::uint32_t k = 0; k < lives.size(); ++k) {
    if (has_predecessor[k] != 0) continue;
    ArenaBlock storage;
    storage.bytes = problem.values[lives[k].instance.value].bytes;
    storage.begin = lives[k].instance.made_at;
    for (std::uint32_t life = k; life != kNone; life = successor[life]) {
      storage.instances.push_back(lives[life].instance);
      storage.end = lives[life].end;
    }
    blocks.push_back(std::move(storage));
  }
  blocks.insert(blocks.end(), workspaces.begin(), workspaces.end());
  return blocks;
}

std::vector<ArenaBuffer> arena_buffers(std::span<const ArenaBlock> blocks) {
  std::vector<ArenaBuffer> buffers;
  for (const ArenaBlock& storage : blocks) {
    buffers.push_back({storage.bytes, storage.begin, storage.end, {}});
  }
  return buffers;
}

double seconds_of(const Problem& problem, std::span<const Event> events) {
  double now = 0, out_end = 0, in_end = 0;
  std::vector<double> left_at(problem.values.size(), 0), back_at(problem.values.size(), 0);
  const auto copy_s = [&](std::uint32_t value) {
    return problem.link->latency_s +
           static_cast<double>(problem.values[value].bytes) / problem.link->bytes_per_s;
  };
  for (const Event& event : events) {
    switch (event.kind) {
      case Event::Kind::Run: {
        const Item& item = problem.items[event.index];
        for (std::uint32_t v : item.reads) now = std::max(now, back_at[v]);
        now += item.alternatives[event.alternative].seconds;
        for (std::uint32_t v : item.makes) back_at[v] = 0;
        break;
      }
      case Event::Kind::Out:
        left_at[event.index] = out_end = std::max(now, out_end) + copy_s(event.index);
        break;
      case Event::Kind::Free:
        now = std::max(now, left_at[event.index]);
        break;
      case Event::Kind::In:
        back_at[event.index] = in_end =
            std::max({now, in_end, left_at[event.index]}) + copy_s(event.index);
        break;
    }
  }
  return now;
}

std::vector<Event> plain_events(const Problem& problem) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    events.push_back({Event::Kind::Run, i, 0});
  }
  return events;
}

Plan planned(const Problem& problem, std::vector<Event> events, const PlaceOptions& options,
             bool in_place) {
  Plan plan;
  plan.blocks = lifetimes_of(problem, events, in_place);
  const Arena arena = place(arena_buffers(plan.blocks), options);
  for (std::size_t k = 0; k < plan.blocks.size(); ++k) plan.blocks[k].offset = arena.offsets[k];
  plan.arena_bytes = arena.bytes;
  plan.max_live_bytes = arena.max_live_bytes;
  plan.seconds = seconds_of(problem, events);
  plan.events = std::move(events);
  return plan;
}

std::uint64_t working_set_bytes(const Problem& problem, std::uint32_t index) {
  const Item& item = problem.items[index];
  std::uint64_t bytes = 0;
  for (std::uint32_t v : item.reads) bytes += problem.values[v].bytes;
  for (std::uint32_t v : item.makes) bytes += problem.values[v].bytes;
  // In-place sharing saves at most the bytes of the results that may overwrite an operand, and at
  // most the bytes of those operands.
  std::vector<std::uint32_t> results, operands;
  for (const auto& [result, operand] : item.may_share) {
    if (problem.values[operand].is_output) continue;
    results.push_back(result);
    operands.push_back(operand);
  }
  const auto sum_once = [&](std::vector<std::uint32_t>& list) {
    std::ranges::sort(list);
    const auto rest = std::ranges::unique(list);
    list.erase(rest.begin(), rest.end());
    std::uint64_t sum = 0;
    for (const std::uint32_t v : list) sum += problem.values[v].bytes;
    return sum;
  };
  bytes -= std::min(sum_once(results), sum_once(operands));
  std::uint64_t least = item.alternatives.front().workspace_bytes;
  for (const Implementation& alternative : item.alternatives)
    least = std::min(least, alternative.workspace_bytes);
  return bytes + least;
}

std::uint64_t largest_working_set_bytes(const Problem& problem) {
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    most = std::max(most, working_set_bytes(problem, i));
  }
  return most;
}

}  // namespace tenon::memory
