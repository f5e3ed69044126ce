// Rematerialization by lower sets and dynamic programming (Kusumoto et al. 2019, Chen et al. 2016).
#include "memory/lower_sets.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

namespace tenon::memory {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
constexpr std::size_t kMostSets = 4000;
constexpr int kBudgets = 24, kSegmentSizes = 60;
constexpr std::size_t kTimes = 16;  // Samples between the least and the greatest time of a budget.
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// A bit set of fixed size.
class Bits {
 public:
  explicit Bits(std::size_t count = 0) : words_((count + 63) / 64, 0) {}
  void add(std::size_t k) { words_[k / 64] |= std::uint64_t{1} << (k % 64); }
  bool has(std::size_t k) const { return (words_[k / 64] >> (k % 64) & 1) != 0; }
  std::size_t size() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  bool is_within(const Bits& other) const {
    for (std::size_t k = 0; k < words_.size(); ++k) {
      if ((words_[k] & ~other.words_[k]) != 0) return false;
    }
    return true;
  }
  void join(const Bits& other) {
    for (std::size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
  }
  auto operator<=>(const Bits&) const = default;

 private:
  std::vector<std::uint64_t> words_;
};

// Dependency graph of the repeatable items.
struct Forward {
  std::vector<std::uint32_t> items;    // Items of the problem, in order.
  std::vector<std::uint32_t> node_of;  // Defining node, by value; kNone for values of other items.
  std::vector<std::vector<std::uint32_t>> before, after;
  std::vector<std::uint64_t> bytes;
  std::vector<double> seconds;
  std::size_t size() const { return items.size(); }

  explicit Forward(const Problem& problem) : node_of(problem.values.size(), kNone) {
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
      const Item& item = problem.items[i];
      if (!item.may_repeat) continue;
      const auto node = static_cast<std::uint32_t>(items.size());
      items.push_back(i);
      auto& from = before.emplace_back();
      for (const std::uint32_t v : item.reads) {
        if (node_of[v] == kNone) {
          throw Error("blocks of a forward pass alone can be computed again",
                      ErrorKind::Unsupported)
              .at("item '", item.name, "'")
              .expected("a document whose backward half is known: one that Chainer wrote");
        }
        if (std::ranges::find(from, node_of[v]) == from.end()) from.push_back(node_of[v]);
      }
      std::uint64_t made = 0;
      for (const std::uint32_t v : item.makes) {
        node_of[v] = node;
        made += problem.values[v].bytes;
      }
      bytes.push_back(made);
      seconds.push_back(item.alternatives[0].seconds);
    }
    after.resize(items.size());
    for (std::uint32_t k = 0; k < items.size(); ++k) {
      for (const std::uint32_t b : before[k]) after[b].push_back(k);
    }
  }

  // Nodes of a lower set with readers outside of it.
  Bits boundary(const Bits& set) const {
    Bits result(size());
    for (std::uint32_t k = 0; k < size(); ++k) {
      const bool is_read =
          std::ranges::any_of(after[k], [&](std::uint32_t r) { return !set.has(r); });
      if (set.has(k) && is_read) result.add(k);
    }
    return result;
  }
  // Bytes that the formula adds to a block: incoming gradients and the operands of their functions.
  std::uint64_t neighbour_bytes(const Bits& set) const {
    Bits readers(size()), read(size());
    for (std::uint32_t k = 0; k < size(); ++k) {
      const bool reads =
          std::ranges::any_of(before[k], [&](std::uint32_t b) { return set.has(b); });
      if (set.has(k) || !reads) continue;
      readers.add(k);
      for (const std::uint32_t b : before[k]) {
        if (!set.has(b)) read.add(b);
      }
    }
    std::uint64_t sum = 0;
    for (std::uint32_t k = 0; k < size(); ++k)
      sum += (readers.has(k) ? bytes[k] : 0) + (read.has(k) ? bytes[k] : 0);
    return sum;
  }
};

std::vector<Bits> sets_of(const Forward& graph, Method method) {
  std::set<Bits> found;
  if (method == Method::Exact) {
    std::vector<Bits> open{Bits(graph.size())};
    while (!open.empty()) {
      const Bits set = std::move(open.back());
      open.pop_back();
      if (!found.insert(set).second) continue;
      if (found.size() > kMostSets) {
        throw Error("the graph has too many lower sets for all of them", ErrorKind::Unsupported)
            .expected("at most ", kMostSets)
            .hint("--method=approximate takes those that end at one value");
      }
      for (std::uint32_t k = 0; k < graph.size(); ++k) {
        const bool may = !set.has(k) && std::ranges::all_of(graph.before[k], [&](std::uint32_t b) {
          return set.has(b);
        });
        if (!may) continue;
        Bits larger = set;
        larger.add(k);
        if (!found.contains(larger)) open.push_back(std::move(larger));
      }
    }
  } else {
    std::vector<Bits> ancestors;
    Bits all(graph.size());
    found.insert(all);
    for (std::uint32_t k = 0; k < graph.size(); ++k) {
      Bits set(graph.size());
      for (const std::uint32_t b : graph.before[k]) set.join(ancestors[b]);
      set.add(k);
      all.add(k);
      found.insert(set);
      ancestors.push_back(std::move(set));
    }
    found.insert(all);
  }
  std::vector<Bits> sets(found.begin(), found.end());
  std::ranges::stable_sort(sets, {}, [](const Bits& set) { return set.size(); });
  return sets;
}

using Sequence = std::vector<Bits>;  // Growing lower sets; the last has all nodes.

// Reports progress; remembers whether the caller ended the search.
class Progress {
 public:
  explicit Progress(const SearchOptions& options) : options_(options) {}
  // Returns whether the search should continue, after `count` more evaluations.
  bool advance(std::uint64_t count) {
    at_.evaluation_count += count;
    is_stopped_ = is_stopped_ || (options_.goes_on && !options_.goes_on(at_));
    return !is_stopped_;
  }
  void note(double seconds, std::uint64_t live_bytes) {
    if (live_bytes <= options_.budget_bytes) at_.seconds = std::min(at_.seconds, seconds);
    at_.smallest_bytes = std::min(at_.smallest_bytes, live_bytes);
  }
  bool is_stopped() const { return is_stopped_; }

 private:
  const SearchOptions& options_;
  SearchProgress at_{.seconds = std::numeric_limits<double>::infinity(), .smallest_bytes = kNever};
  bool is_stopped_ = false;
};

// Dynamic program: least kept bytes for every time, over growing lower sets whose blocks fit a
// budget.
class DynamicProgram {
 public:
  // A stopped construction has no pairs: `within` returns nothing.
  DynamicProgram(const Forward& graph, std::vector<Bits> sets, Progress& progress)
      : graph_(graph), sets_(std::move(sets)) {
    double whole = 0;
    for (const double seconds : graph.seconds) whole += seconds;
    const std::size_t grid = sets_.size() > 400 ? 150 : 400;
    const double unit = std::max(whole, 1e-12) / static_cast<double>(grid);
    times_ = 2 * grid;
    for (const Bits& set : sets_) {
      boundaries_.push_back(graph.boundary(set));
      neighbours_.push_back(graph.neighbour_bytes(set));
    }
    pairs_.resize(sets_.size());
    for (std::uint32_t a = 0; a < sets_.size() && progress.advance(0); ++a) {
      for (std::uint32_t b = a + 1; b < sets_.size(); ++b) {
        if (sets_[a] == sets_[b] || !sets_[a].is_within(sets_[b])) continue;
        Pair pair{b, 0, neighbours_[b], 0};
        double again = 0;
        for (std::uint32_t k = 0; k < graph.size(); ++k) {
          if (!sets_[b].has(k) || sets_[a].has(k)) continue;
          pair.work_bytes += 2 * graph.bytes[k];
          if (boundaries_[b].has(k)) {
            pair.kept_bytes += graph.bytes[k];
          } else {
            again += graph.seconds[k];
          }
        }
        const bool is_last = b + 1 == sets_.size();
        pair.time = is_last ? 0 : static_cast<std::uint32_t>(again / unit + 0.5);
        pairs_[a].push_back(pair);
      }
    }
  }

  std::uint64_t whole_bytes() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : graph_.bytes) sum += 2 * bytes;
    return sum;
  }

  // Returns sequences within the formula's budget, from the fastest to the one that keeps fewest
  // bytes; empty if the budget is impossible.
  std::vector<Sequence> within(std::uint64_t budget) const {
    struct Cell {
      std::uint64_t kept = kNever;
      std::uint32_t set = kNone, time = 0;
    };
    std::vector<std::vector<Cell>> best(sets_.size(), std::vector<Cell>(times_));
    best[0][0].kept = 0;
    for (std::uint32_t a = 0; a < sets_.size(); ++a) {
      for (const Pair& pair : pairs_[a]) {
        if (pair.work_bytes > budget) continue;
        for (std::uint32_t t = 0; t + pair.time < times_; ++t) {
          const Cell& from = best[a][t];
          if (from.kept == kNever || from.kept + pair.work_bytes > budget) continue;
          Cell& to = best[pair.to][t + pair.time];
          if (from.kept + pair.kept_bytes < to.kept) to = {from.kept + pair.kept_bytes, a, t};
        }
      }
    }
    std::vector<Sequence> result;
    const std::vector<Cell>& ends = best.back();
    const auto is_reached = [](const Cell& cell) { return cell.kept != kNever; };
    std::vector<std::uint32_t> reached;
    for (std::uint32_t t = 0; t < times_; ++t) {
      if (is_reached(ends[t])) reached.push_back(t);
    }
    const std::size_t count = std::min(kTimes, reached.size());
    for (std::size_t k = 0; k < count; ++k) {
      Sequence sequence;
      std::uint32_t set = static_cast<std::uint32_t>(sets_.size() - 1);
      std::uint32_t time = reached[count == 1 ? 0 : k * (reached.size() - 1) / (count - 1)];
      while (set != 0) {
        sequence.push_back(sets_[set]);
        const Cell& cell = best[set][time];
        set = cell.set;
        time = cell.time;
      }
      std::ranges::reverse(sequence);
      result.push_back(std::move(sequence));
    }
    return result;
  }

 private:
  struct Pair {
    std::uint32_t to;
    std::uint64_t kept_bytes, work_bytes;
    std::uint32_t time;
  };
  const Forward& graph_;
  std::vector<Bits> sets_, boundaries_;
  std::vector<std::uint64_t> neighbours_;
  std::vector<std::vector<Pair>> pairs_;
  std::size_t times_ = 0;
};

std::vector<Sequence> sequences_of_programme(const Forward& graph, Method method,
                                             Progress& progress) {
  const DynamicProgram programme(graph, sets_of(graph, method), progress);
  std::uint64_t impossible = 0, possible = programme.whole_bytes();
  const std::uint64_t most = possible;
  while (possible - impossible > most / 1000 + 1 && progress.advance(0)) {
    const std::uint64_t middle = impossible + (possible - impossible) / 2;
    (programme.within(middle).empty() ? impossible : possible) = middle;
  }
  std::vector<Sequence> all;
  for (int k = 0; k < kBudgets && progress.advance(0); ++k) {
    // Small budgets are sampled more densely.
    const double share = static_cast<double>(k) / (kBudgets - 1);
    const auto budget =
        possible + static_cast<std::uint64_t>(static_cast<double>(most - possible) * share * share);
    for (Sequence& sequence : programme.within(budget)) all.push_back(std::move(sequence));
  }
  return all;
}

std::vector<Sequence> segments(const Forward& graph) {
  std::vector<Bits> cuts;
  for (const Bits& set : sets_of(graph, Method::Approximate)) {
    if (set.size() == 0 || graph.boundary(set).size() > 1) continue;
    if (cuts.empty() || cuts.back().is_within(set)) cuts.push_back(set);
  }
  std::uint64_t whole = 0;
  for (const std::uint64_t bytes : graph.bytes) whole += bytes;
  std::set<Sequence> all;
  for (int k = 1; k <= kSegmentSizes; ++k) {
    const std::uint64_t size = whole / kSegmentSizes * static_cast<std::uint64_t>(k);
    Sequence sequence;
    Bits last(graph.size());
    for (const Bits& cut : cuts) {
      std::uint64_t bytes = 0;
      for (std::uint32_t n = 0; n < graph.size(); ++n)
        bytes += cut.has(n) && !last.has(n) ? graph.bytes[n] : 0;
      if (bytes < size && !(cut == cuts.back())) continue;
      sequence.push_back(cut);
      last = cut;
    }
    all.insert(std::move(sequence));
  }
  return {all.begin(), all.end()};
}

// Nodes to recompute: values of an evicted block that backward items read, and their evicted
// predecessors.
std::vector<char> wanted_again(const Problem& problem, const Forward& graph,
                               const std::vector<char>& is_there) {
  std::vector<char> is_wanted(graph.size(), 0);
  for (const Item& item : problem.items) {
    for (const std::uint32_t v : item.reads) {
      if (!item.may_repeat && graph.node_of[v] != kNone) is_wanted[graph.node_of[v]] = 1;
    }
  }
  for (std::uint32_t k = static_cast<std::uint32_t>(graph.size()); k-- > 0;) {
    if (is_wanted[k] == 0 || is_there[k] != 0) continue;
    for (const std::uint32_t b : graph.before[k]) is_wanted[b] = 1;
  }
  return is_wanted;
}

// A block is recomputed when the first of its evicted values is read.
std::vector<Event> events_of(const Problem& problem, const Forward& graph,
                             const Sequence& sequence) {
  std::vector<std::uint32_t> block(graph.size(), 0);
  std::vector<char> is_there(graph.size(), 0);
  for (std::uint32_t k = 0; k < graph.size(); ++k) {
    while (!sequence[block[k]].has(k)) ++block[k];
    is_there[k] = block[k] + 1 == sequence.size() ? 1 : 0;
  }
  for (const Bits& set : sequence) {
    const Bits kept = graph.boundary(set);
    for (std::uint32_t k = 0; k < graph.size(); ++k) {
      if (kept.has(k)) is_there[k] = 1;
    }
  }
  const std::vector<char> is_wanted = wanted_again(problem, graph, is_there);
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    for (const std::uint32_t v : item.reads) {
      const std::uint32_t node = graph.node_of[v];
      if (item.may_repeat || node == kNone || is_there[node] != 0) continue;
      for (std::uint32_t k = 0; k < graph.size(); ++k) {
        if (block[k] != block[node] || is_there[k] != 0 || is_wanted[k] == 0) continue;
        events.push_back({Event::Kind::Run, graph.items[k], 0});
        is_there[k] = 1;
      }
    }
    events.push_back({Event::Kind::Run, i, 0});
  }
  return events;
}

}  // namespace

std::string_view name_of(Method method) { return method_names()[static_cast<std::size_t>(method)]; }

const std::vector<std::string>& method_names() {
  static const std::vector<std::string> names = {"search", "approximate", "exact", "chen"};
  return names;
}

std::optional<Method> parse_method(std::string_view text) {
  const auto found = std::ranges::find(method_names(), text);
  if (found == method_names().end()) return std::nullopt;
  return static_cast<Method>(found - method_names().begin());
}

SearchResult plan_by_lower_sets(const Problem& problem, const SearchOptions& options,
                                Method method) {
  const Forward graph(problem);
  struct Candidate {
    std::vector<Event> events;
    double seconds;
    std::uint64_t live_bytes;
  };
  SearchResult result;
  Progress progress(options);
  std::vector<Candidate> candidates;
  std::vector<Sequence> sequences =
      method == Method::Chen ? segments(graph) : sequences_of_programme(graph, method, progress);
  Bits all(graph.size());
  for (std::uint32_t k = 0; k < graph.size(); ++k) all.add(k);
  // The whole graph as one block: no recomputation. The only candidate if the search was stopped.
  sequences.insert(sequences.begin(), {all});
  for (const Sequence& sequence : sequences) {
    if (!candidates.empty() && !progress.advance(1)) break;
    Candidate candidate{events_of(problem, graph, sequence), 0, 0};
    candidate.seconds = seconds_of(problem, candidate.events);
    candidate.live_bytes =
        max_live_bytes(arena_buffers(lifetimes_of(problem, candidate.events, options.in_place)),
                       options.place.alignment);
    progress.note(candidate.seconds, candidate.live_bytes);
    candidates.push_back(std::move(candidate));
  }
  result.was_stopped = progress.is_stopped();
  result.evaluation_count = candidates.size();
  PlaceOptions place = options.place;
  place.capacity = options.budget_bytes;
  std::ranges::stable_sort(candidates, {}, &Candidate::seconds);
  for (Candidate& candidate : candidates) {
    if (candidate.live_bytes > options.budget_bytes) continue;
    Plan plan = planned(problem, candidate.events, place, options.in_place);
    if (plan.arena_bytes > options.budget_bytes) continue;
    result.plan = std::move(plan);
    result.is_within_budget = true;
    return result;
  }
  auto smallest = std::ranges::min_element(candidates, {}, &Candidate::live_bytes);
  result.plan = planned(problem, std::move(smallest->events), place, options.in_place);
  return result;
}

}  // namespace tenon::memory
