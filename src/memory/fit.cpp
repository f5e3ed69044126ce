#include "memory/arena.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>
#include <utility>

// Branch and bound over placements in which every buffer lies on the floor or on another buffer:
// any placement can be pushed down to such a one. Time is cut into sections in which the same
// buffers are live. For each section the search knows a floor below which no further buffer will
// lie, and for each unplaced buffer its least possible offset. A section's floor and its unplaced
// buffers must fit the capacity. A floor rises to the least offset of the buffers of its section,
// and an offset to the highest floor of the buffer's sections, until a fixed point.
//
// One node takes a buffer with the lowest least offset, and either places it there or rules that
// out: then it lies on an unplaced buffer, which raises its offset. At a moment that no unplaced
// buffer crosses, both sides are solved independently. Failed states are memoized.
namespace tenon::memory {
namespace {

using Bytes = std::int64_t;
using Index = std::uint32_t;

struct Sections {
  std::vector<Index> first, last;           // By buffer: first section and one past the last.
  std::vector<std::vector<Index>> buffers;  // By section.
};

// Only moments at which the last buffer begins before one ends: at all others a subset is live.
Sections sections_of(std::span<const ArenaBuffer> buffers) {
  struct Edge {
    std::uint32_t moment;
    bool is_begin;
    Index buffer;
  };
  std::vector<Edge> edges;
  for (Index b = 0; b < buffers.size(); ++b) {
    edges.push_back({buffers[b].begin, true, b});
    edges.push_back({buffers[b].end, false, b});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
    if (x.moment != y.moment) return x.moment < y.moment;
    return x.is_begin != y.is_begin ? y.is_begin : x.buffer < y.buffer;
  });
  Sections sections;
  sections.first.resize(buffers.size());
  sections.last.resize(buffers.size());
  Index count = 0;
  bool has_begun = false;
  for (const Edge& edge : edges) {
    if (edge.is_begin) {
      sections.first[edge.buffer] = count;
      has_begun = true;
    } else {
      if (has_begun) ++count;
      has_begun = false;
      sections.last[edge.buffer] = count;
    }
  }
  sections.buffers.resize(count);
  for (Index b = 0; b < buffers.size(); ++b) {
    for (Index s = sections.first[b]; s < sections.last[b]; ++s) sections.buffers[s].push_back(b);
  }
  return sections;
}

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

struct StateKey {
  std::uint64_t low = 0, high = 0;
  bool operator==(const StateKey&) const = default;
};
struct StateKeyHash {
  std::size_t operator()(const StateKey& key) const { return key.low; }
};

enum class NodeWeights : std::uint8_t { None, Mean, Heaviest };
struct Style {
  std::uint64_t least_nodes;  // Nodes per restart, at least.
  bool uses_twins;
  NodeWeights weights[4];  // By round.
};

class PlacementSearch {
 public:
  PlacementSearch(std::span<const ArenaBuffer> buffers, std::uint64_t capacity, const Style& style)
      : style_(style),
        capacity_(static_cast<Bytes>(capacity)),
        sections_(sections_of(buffers)),
        size_(buffers.size()),
        least_(buffers.size(), 0),
        rank_(buffers.size(), 0),
        next_alike_(buffers.size(), kNone),
        is_placed_(buffers.size(), 0),
        twins_(buffers.size()),
        floor_(sections_.buffers.size(), 0),
        remaining_(sections_.buffers.size(), 0),
        weight_(sections_.buffers.size(), 1),
        is_queued_(sections_.buffers.size(), 0) {
    for (Index b = 0; b < buffers.size(); ++b) {
      size_[b] = static_cast<Bytes>(buffers[b].bytes);
      for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) remaining_[s] += size_[b];
    }
    for (Bytes bytes : remaining_) is_impossible_ = is_impossible_ || bytes > capacity_;
    total_ = remaining_;
    if (style_.uses_twins && !is_impossible_) find_twins();
  }

  /// Restarts in another order; learned failures persist.
  FitSearch::Outcome run(std::uint64_t round, std::uint64_t node_limit) {
    if (is_impossible_) return FitSearch::Outcome::Impossible;
    node_limit_ = node_count_ + node_limit;
    is_cut_off_ = false;
    rank_buffers(round);
    // The twin order changes per round and invalidates failures.
    if (style_.uses_twins) failed_.clear();
    std::vector<Index> all(size_.size());
    for (Index b = 0; b < all.size(); ++b) all[b] = b;
    if (solve_parts(all)) return FitSearch::Outcome::Placed;
    undo_to(0);
    return is_cut_off_ ? FitSearch::Outcome::CutOff : FitSearch::Outcome::Impossible;
  }

  std::uint64_t node_count() const { return node_count_; }
  std::vector<std::uint64_t> offsets() const {
    return std::vector<std::uint64_t>(least_.begin(), least_.end());
  }

 private:
  struct Change {
    enum Kind : std::uint8_t { Floor, Least, Placed } kind;
    Index index;
    Bytes before;
  };

  // Symmetry breaking: of two buffers that are live in the same sections and adjacent in memory,
  // only one order is searched. Twins of equal size are stacked by index.
  void find_twins() {
    std::vector<Index> order(size_.size());
    for (Index b = 0; b < order.size(); ++b) order[b] = b;
    std::sort(order.begin(), order.end(), [&](Index x, Index y) {
      return std::tuple(sections_.first[x], sections_.last[x], -size_[x], x) <
             std::tuple(sections_.first[y], sections_.last[y], -size_[y], y);
    });
    for (std::size_t k = 1; k < order.size(); ++k) {
      const Index later = order[k];
      for (std::size_t j = k; j-- > 0;) {
        const Index earlier = order[j];
        if (sections_.first[earlier] != sections_.first[later]) break;
        if (sections_.last[earlier] != sections_.last[later]) break;
        if (size_[earlier] == size_[later]) {
          if (j + 1 == k) next_alike_[earlier] = later;
        } else {
          twins_[later].push_back(earlier);
          twins_[earlier].push_back(later);
        }
      }
    }
    for (Index b : order) {
      if (next_alike_[b] == kNone) continue;
      if (!raise_least(next_alike_[b], least_[b] + size_[b])) is_impossible_ = true;
    }
    if (!propagate()) is_impossible_ = true;
    trail_.clear();
  }

  // Ranks buffers of equal least offset. The first rounds use the measures that succeed most often,
  // later rounds vary them; some prioritize buffers in sections where the search failed most.
  void rank_buffers(std::uint64_t round) {
    std::vector<std::array<Bytes, 4>> keys(size_.size());
    double total_weight = 0;
    for (std::uint64_t weight : weight_) total_weight += static_cast<double>(weight);
    const NodeWeights weights = round < 3 ? NodeWeights::None : style_.weights[round % 4];
    for (Index b = 0; b < size_.size(); ++b) {
      const Bytes width = sections_.last[b] - sections_.first[b];
      Bytes tight = 0;
      double weight = 0, heaviest = 0;
      for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) {
        tight = std::max(tight, total_[s]);
        weight += static_cast<double>(weight_[s]);
        heaviest = std::max(heaviest, static_cast<double>(weight_[s]));
      }
      const Bytes area = width * size_[b];
      std::array<Bytes, 3> key = {-tight, -width, -area};
      if (round % 3 == 0) key = {-width, -area, -tight};
      if (round % 3 == 1) key = {-tight, -area, -width};
      if (weights == NodeWeights::None) {
        keys[b] = {key[0], key[1], key[2], 0};
      } else {
        const double measure =
            weights == NodeWeights::Heaviest ? heaviest : weight / static_cast<double>(width);
        keys[b] = {-static_cast<Bytes>(measure * 1e9 / total_weight), key[0], key[1], key[2]};
      }
      if (round < 3) continue;
      const double noise = static_cast<double>(mixed(round * 0x10001U + b) >> 11) * 0x1p-53;
      for (Bytes& part : keys[b]) {
        part = static_cast<Bytes>(static_cast<double>(part) * (0.5 + noise) * 16);
      }
    }
    std::vector<Index> order(size_.size());
    for (Index b = 0; b < order.size(); ++b) order[b] = b;
    std::stable_sort(order.begin(), order.end(),
                     [&](Index x, Index y) { return keys[x] < keys[y]; });
    for (Index k = 0; k < order.size(); ++k) rank_[order[k]] = k;
  }

  // Solves independent parts of `buffers` separately, the smallest first: it fails soonest.
  bool solve_parts(std::vector<Index>& buffers) {
    std::sort(buffers.begin(), buffers.end(),
              [&](Index x, Index y) { return sections_.first[x] < sections_.first[y]; });
    std::vector<std::vector<Index>> parts;
    Index reach = 0;
    for (Index b : buffers) {
      if (parts.empty() || sections_.first[b] >= reach) parts.emplace_back();
      parts.back().push_back(b);
      reach = std::max(reach, sections_.last[b]);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& x, const auto& y) { return x.size() < y.size(); });
    for (std::vector<Index>& part : parts) {
      if (!solve(part)) return false;
    }
    return true;
  }

  bool solve(std::vector<Index>& part) {
    const StateKey key = key_of(part);
    if (failed_.count(key) != 0) return false;
    const std::size_t entry = trail_.size();
    for (;;) {
      if (++node_count_ > node_limit_) {
        is_cut_off_ = true;
        break;
      }
      const Index chosen = choose(part);
      const std::size_t mark = trail_.size();
      if (set_placed(chosen)) {
        std::vector<Index> rest;
        rest.reserve(part.size());
        for (Index b : part) {
          if (b != chosen) rest.push_back(b);
        }
        if (solve_parts(rest)) return true;
      }
      undo_to(mark);
      if (is_cut_off_ || !lift(chosen)) break;
    }
    undo_to(entry);
    if (!is_cut_off_ && failed_.size() < kMaxRemembered) failed_.insert(key);
    return false;
  }

  StateKey key_of(const std::vector<Index>& part) const {
    StateKey key;
    for (Index b : part) {
      const std::uint64_t hash =
          mixed((std::uint64_t{b} << 44) ^ static_cast<std::uint64_t>(least_[b]));
      key.low += hash;
      key.high += mixed(hash ^ 0x5bd1e995U);
    }
    return key;
  }

  // Picks the lowest buffer, so that no other can be placed under it.
  Index choose(const std::vector<Index>& part) const {
    Index best = part.front();
    for (Index b : part) {
      if (std::pair(least_[b], rank_[b]) < std::pair(least_[best], rank_[best])) best = b;
    }
    return best;
  }

  bool set_placed(Index b) {
    trail_.push_back({Change::Placed, b, 0});
    is_placed_[b] = 1;
    const Bytes top = least_[b] + size_[b];
    for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) remaining_[s] -= size_[b];
    for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) {
      if (!raise_floor(s, top)) return false;
    }
    if (!propagate()) return false;
    for (Index twin : twins_[b]) {
      const bool is_out_of_order = is_placed_[twin] == 0 && rank_[twin] < rank_[b];
      if (is_out_of_order && least_[twin] == top && !lift(twin)) return false;
    }
    return true;
  }

  // Rules out the least offset: the buffer then lies on an unplaced buffer.
  bool lift(Index b) {
    Bytes lowest = capacity_ + 1;
    for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) {
      for (Index other : sections_.buffers[s]) {
        if (is_placed_[other] == 0 && other != b)
          lowest = std::min(lowest, least_[other] + size_[other]);
      }
    }
    return raise_least(b, lowest) && propagate();
  }

  bool raise_floor(Index s, Bytes floor) {
    if (floor <= floor_[s]) return true;
    trail_.push_back({Change::Floor, s, floor_[s]});
    floor_[s] = floor;
    if (floor + remaining_[s] > capacity_) {
      ++weight_[s];
      return false;
    }
    for (Index b : sections_.buffers[s]) {
      if (is_placed_[b] == 0 && least_[b] < floor && !raise_least(b, floor)) return false;
    }
    return true;
  }

  bool raise_least(Index b, Bytes least) {
    if (least <= least_[b]) return true;
    if (least + size_[b] > capacity_) return false;
    for (Index s = sections_.first[b]; s < sections_.last[b]; ++s) {
      if (floor_[s] == least_[b] || floor_[s] < least) enqueue(s);
    }
    trail_.push_back({Change::Least, b, least_[b]});
    least_[b] = least;
    const Index next = next_alike_[b];
    return next == kNone || is_placed_[next] != 0 || raise_least(next, least + size_[b]);
  }

  void enqueue(Index s) {
    if (is_queued_[s] != 0) return;
    is_queued_[s] = 1;
    queue_.push_back(s);
  }

  bool propagate() {
    bool is_possible = true;
    while (!queue_.empty()) {
      const Index s = queue_.back();
      queue_.pop_back();
      is_queued_[s] = 0;
      if (!is_possible || remaining_[s] == 0) continue;
      Bytes lowest = capacity_;
      for (Index b : sections_.buffers[s]) {
        if (is_placed_[b] == 0) lowest = std::min(lowest, least_[b]);
      }
      is_possible = raise_floor(s, lowest);
    }
    return is_possible;
  }

  void undo_to(std::size_t mark) {
    for (Index s : queue_) is_queued_[s] = 0;
    queue_.clear();
    while (trail_.size() > mark) {
      const Change& change = trail_.back();
      switch (change.kind) {
        case Change::Floor:
          floor_[change.index] = change.before;
          break;
        case Change::Least:
          least_[change.index] = change.before;
          break;
        case Change::Placed:
          is_placed_[change.index] = 0;
          for (Index s = sections_.first[change.index]; s < sections_.last[change.index]; ++s) {
            remaining_[s] += size_[change.index];
          }
      }
      trail_.pop_back();
    }
  }

  static constexpr std::size_t kMaxRemembered = 4'000'000;

  static constexpr Index kNone = static_cast<Index>(-1);

  Style style_;
  Bytes capacity_;
  Sections sections_;
  bool is_impossible_ = false, is_cut_off_ = false;
  std::uint64_t node_count_ = 0, node_limit_ = 0;
  // By buffer.
  std::vector<Bytes> size_, least_;
  std::vector<Index> rank_, next_alike_;
  std::vector<char> is_placed_;
  std::vector<std::vector<Index>> twins_;
  // By section.
  std::vector<Bytes> floor_, remaining_, total_;
  std::vector<std::uint64_t> weight_;  // Number of failures in the section.
  std::vector<char> is_queued_;
  std::vector<Index> queue_;

  std::vector<Change> trail_;
  std::unordered_set<StateKey, StateKeyHash> failed_;
};

// The Luby restart sequence 1 1 2 1 1 2 4 1 …: restart lengths that stay near the best fixed length
// (Luby et al. 1993).
std::uint64_t luby(std::uint64_t k) {
  for (std::uint64_t power = 1;; power = 1) {
    while (power - 1 < k) power <<= 1;
    if (power - 1 == k) return power >> 1;
    k -= (power >> 1) - 1;
  }
}

// Search times have a heavy tail: many short searches in different orders find a solution before
// one long search does. Neither style dominates the other.
constexpr Style kStyles[] = {
    {4000, true, {NodeWeights::None, NodeWeights::Mean, NodeWeights::None, NodeWeights::Heaviest}},
    {1000, false, {NodeWeights::None, NodeWeights::Mean, NodeWeights::None, NodeWeights::Mean}},
};
constexpr std::uint64_t kFirstTurn = 1'000'000;  // Nodes.

}  // namespace

FitSearch fit(std::span<const ArenaBuffer> buffers, std::uint64_t capacity,
              std::uint64_t node_limit) {
  FitSearch result;
  std::vector<PlacementSearch> searches;
  for (const Style& style : kStyles) searches.emplace_back(buffers, capacity, style);
  std::vector<std::uint64_t> rounds(searches.size(), 0);
  // The styles alternate with growing node limits.
  for (std::uint64_t turn = 0; result.node_count < node_limit; ++turn) {
    PlacementSearch& search = searches[turn % searches.size()];
    std::uint64_t& round = rounds[turn % searches.size()];
    const std::uint64_t turn_end = result.node_count + (kFirstTurn << (turn / searches.size()));
    while (result.node_count < std::min(node_limit, turn_end)) {
      const std::uint64_t before = search.node_count();
      const std::uint64_t nodes = kStyles[turn % searches.size()].least_nodes * luby(round + 1);
      result.outcome = search.run(round++, std::min(nodes, node_limit - result.node_count));
      result.node_count += search.node_count() - before;
      if (result.outcome == FitSearch::Outcome::Placed) result.offsets = search.offsets();
      if (result.outcome != FitSearch::Outcome::CutOff) return result;
    }
  }
  return result;
}

}  // namespace tenon::memory
