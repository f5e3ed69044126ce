// Reduces peak memory by reordering items: local search around the peak.
#include "memory/order.h"

#include "memory/lifetimes.h"
#include "memory/window.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

namespace tenon::memory {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
// Limits: items visited by trial moves in total, and the problem size up to which moves are tried.
constexpr std::uint64_t kWork = 20'000'000;
constexpr std::size_t kMostItems = 20'000, kMostBounded = 5'000;
constexpr int kSweeps = 3;

using Order = std::vector<std::uint32_t>;  // Items in execution order.

struct OrderCost {
  std::uint64_t peak_bytes = 0;
  std::size_t peak_count = 0;  // Number of moments at the peak.
  double area = 0;             // Live bytes, summed over moments.
  auto operator<=>(const OrderCost&) const = default;
};

class Orders {
 public:
  Orders(const Problem& problem, bool in_place)
      : problem_(problem),
        in_place_(in_place),
        maker_(problem.makers()),
        readers_(problem.values.size()),
        place_(problem.items.size()),
        last_(problem.values.size()) {
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
      for (std::uint32_t v : problem.items[i].reads) readers_[v].push_back(i);
    }
  }

  Order given() const {
    Order order(problem_.items.size());
    std::iota(order.begin(), order.end(), 0U);
    return order;
  }

  OrderCost cost(const Order& order) {
    find_live(order);
    OrderCost cost;
    for (const std::int64_t bytes : live_) {
      const auto now = static_cast<std::uint64_t>(bytes);
      if (now > cost.peak_bytes) cost.peak_bytes = now, cost.peak_count = 0;
      if (now == cost.peak_bytes) ++cost.peak_count;
      cost.area += static_cast<double>(bytes);
    }
    return cost;
  }

  // Delays each item that allocates more than it frees to just before the first reader of its
  // results.
  Order delayed() const {
    std::vector<std::uint32_t> place(problem_.items.size()), first(problem_.values.size(), kNone);
    for (auto i = static_cast<std::uint32_t>(place.size()); i-- > 0;) {
      const Item& item = problem_.items[i];
      std::uint64_t made = 0, freed = 0;
      std::uint32_t wanted = kNone;
      for (std::uint32_t v : item.makes) {
        made += problem_.values[v].bytes;
        wanted = std::min(wanted, first[v]);
      }
      for (std::uint32_t v : item.reads)
        freed += readers_[v].back() == i ? problem_.values[v].bytes : 0;
      // In reverse order: a delayed item moves together with its first reader.
      place[i] = made <= freed || wanted == kNone ? i : wanted;
      for (std::uint32_t v : item.reads) first[v] = std::min(first[v], place[i]);
    }
    Order order = given();
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return place[i]; });
    return order;
  }

  // Moves each item to the place with the least byte-time area, all others fixed.
  Order settled(Order order) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      find_places(order);
      bool has_moved = false;
      for (std::uint32_t i = static_cast<std::uint32_t>(order.size()); i-- > 0;) {
        const std::uint32_t to = best_place(i);
        if (to == place_[i]) continue;
        has_moved = true;
        const auto begin = order.begin() + std::min(to, place_[i]);
        const auto end = order.begin() + std::max(to, place_[i]) + 1;
        to > place_[i] ? std::rotate(begin, begin + 1, end) : std::rotate(begin, end - 1, end);
        for (auto at = begin; at != end; ++at)
          place_[*at] = static_cast<std::uint32_t>(at - order.begin());
      }
      if (!has_moved) break;
    }
    return order;
  }

  // Moves items away from the peak while the cost decreases.
  Order lowered(Order order, std::uint64_t bound_bytes) {
    std::uint64_t trials = kWork / std::max<std::size_t>(order.size(), 1);
    OrderCost now = cost(order);
    while (now.peak_bytes > bound_bytes && trials > 0) {
      const std::vector<Order> moves = moves_around_peak(order, trials);
      Order best;
      for (const Order& move : moves) {
        const OrderCost then = cost(move);
        if (then >= now) continue;
        now = then;
        best = move;
      }
      if (best.empty()) break;
      order = std::move(best);
    }
    return order;
  }

 private:
  void find_places(const Order& order) {
    for (std::uint32_t p = 0; p < order.size(); ++p) place_[order[p]] = p;
  }

  void find_live(const Order& order) {
    find_places(order);
    const auto count = static_cast<std::uint32_t>(order.size());
    live_.assign(count + 1, 0);
    for (std::uint32_t v = 0; v < problem_.values.size(); ++v) {
      last_[v] = place_[maker_[v]];
      for (std::uint32_t i : readers_[v]) last_[v] = std::max(last_[v], place_[i]);
      if (problem_.values[v].is_output) last_[v] = count - 1;
      const auto bytes = static_cast<std::int64_t>(problem_.values[v].bytes);
      live_[place_[maker_[v]]] += bytes;
      live_[last_[v] + 1] -= bytes;
    }
    if (in_place_) {
      std::vector<std::uint32_t> taken;
      for (std::uint32_t p = 0; p < count; ++p) {
        taken.clear();
        for (const auto& [result, operand] : problem_.items[order[p]].may_share) {
          if (last_[operand] != p || problem_.values[operand].is_output) continue;
          if (std::ranges::find(taken, operand) != taken.end()) continue;
          if (std::ranges::find(taken, result) != taken.end()) continue;
          taken.insert(taken.end(), {operand, result});
          const auto bytes = static_cast<std::int64_t>(problem_.values[operand].bytes);
          live_[p] -= bytes;
          live_[p + 1] += bytes;
        }
      }
    }
    for (std::uint32_t p = 1; p <= count; ++p) live_[p] += live_[p - 1];
    live_.resize(count);
    for (std::uint32_t p = 0; p < count; ++p)
      live_[p] +=
          static_cast<std::int64_t>(problem_.items[order[p]].alternatives[0].workspace_bytes);
  }

  // The live bytes that an item causes are convex in its place: its results live from there on, its
  // operands up to it. So the minimum is at an end of the valid range, or at the last other reader
  // of an operand.
  std::uint32_t best_place(std::uint32_t i) const {
    const Item& item = problem_.items[i];
    const std::uint32_t here = place_[i];
    std::uint32_t low = 0, high = static_cast<std::uint32_t>(place_.size()) - 1;
    double made = 0;
    for (std::uint32_t v : item.makes) {
      made += static_cast<double>(problem_.values[v].bytes);
      for (std::uint32_t reader : readers_[v]) high = std::min(high, place_[reader] - 1);
    }
    std::vector<std::pair<std::uint32_t, double>> held;  // Last use by other items, and bytes.
    for (std::uint32_t v : item.reads) {
      low = std::max(low, place_[maker_[v]] + 1);
      if (problem_.values[v].is_output) continue;
      std::uint32_t other = place_[maker_[v]];
      for (std::uint32_t reader : readers_[v])
        other = reader == i ? other : std::max(other, place_[reader]);
      held.emplace_back(other, static_cast<double>(problem_.values[v].bytes));
    }
    const auto holds = [&](std::uint32_t place) {
      double bytes = -made * place;
      for (const auto& [other, each] : held) bytes += each * std::max(place, other);
      return bytes;
    };
    std::uint32_t best = here;
    const auto consider = [&](std::uint32_t place) {
      if (place >= low && place <= high && holds(place) < holds(best)) best = place;
    };
    consider(low);
    consider(high);
    for (const auto& [other, bytes] : held) consider(other > here ? other - 1 : other);
    return best;
  }

  // Returns orders without a value that is live but unused at the peak: defined later, or consumed
  // by all its readers earlier.
  std::vector<Order> moves_around_peak(const Order& order, std::uint64_t& trials) {
    find_live(order);
    const auto peak = static_cast<std::uint32_t>(std::ranges::max_element(live_) - live_.begin());
    const Item& there = problem_.items[order[peak]];
    std::vector<std::uint32_t> alive;
    for (std::uint32_t v = 0; v < problem_.values.size(); ++v) {
      const bool is_alive =
          problem_.values[v].bytes > 0 && place_[maker_[v]] < peak && last_[v] > peak;
      if (is_alive && std::ranges::find(there.reads, v) == there.reads.end()) alive.push_back(v);
    }
    std::ranges::stable_sort(alive, std::greater(),
                             [&](std::uint32_t v) { return problem_.values[v].bytes; });
    std::vector<Order> moves;
    for (const std::uint32_t v : alive) {
      for (const bool is_later : {true, false}) {
        if (trials == 0) return moves;
        --trials;
        if (auto move = is_later ? with_later(order, v, peak) : with_earlier(order, v, peak);
            !move.empty())
          moves.push_back(std::move(move));
      }
    }
    return moves;
  }

  // Moves the value's maker and its dependents after the peak; returns an empty order if the peak
  // item depends on it.
  Order with_later(const Order& order, std::uint32_t value, std::uint32_t peak) const {
    std::vector<char> goes(order.size(), 0);  // By item.
    const std::uint32_t from = place_[maker_[value]];
    goes[maker_[value]] = 1;
    for (std::uint32_t p = from + 1; p <= peak; ++p) {
      const std::vector<std::uint32_t>& reads = problem_.items[order[p]].reads;
      if (std::ranges::any_of(reads, [&](std::uint32_t v) { return goes[maker_[v]] != 0; }))
        goes[order[p]] = 1;
    }
    if (goes[order[peak]] != 0) return {};
    Order moved = order;
    std::stable_partition(moved.begin() + from, moved.begin() + peak + 1,
                          [&](std::uint32_t i) { return goes[i] == 0; });
    return moved;
  }

  // Moves the value's readers and their dependencies before the peak; returns an empty order if
  // they depend on the peak item.
  Order with_earlier(const Order& order, std::uint32_t value, std::uint32_t peak) const {
    if (problem_.values[value].is_output) return {};
    std::vector<char> goes(order.size(), 0);
    for (std::uint32_t reader : readers_[value]) goes[reader] = place_[reader] > peak ? 1 : 0;
    for (std::uint32_t p = last_[value] + 1; p-- > peak;) {
      if (goes[order[p]] == 0) continue;
      if (p == peak) return {};
      for (std::uint32_t v : problem_.items[order[p]].reads) {
        if (place_[maker_[v]] >= peak) goes[maker_[v]] = 1;
      }
    }
    Order moved = order;
    std::stable_partition(moved.begin() + peak, moved.begin() + last_[value] + 1,
                          [&](std::uint32_t i) { return goes[i] != 0; });
    return moved;
  }

  const Problem& problem_;
  bool in_place_;
  std::vector<std::uint32_t> maker_;
  std::vector<std::vector<std::uint32_t>> readers_;  // By value.
  // State of the last evaluated order:
  std::vector<std::uint32_t> place_;  // By item.
  std::vector<std::uint32_t> last_;   // By value: the place of the last reader.
  std::vector<std::int64_t> live_;    // By place.
};

Problem permuted(const Problem& problem, const Order& order) {
  Problem result = problem;
  for (std::size_t k = 0; k < order.size(); ++k) result.items[k] = problem.items[order[k]];
  return result;
}

}  // namespace

Problem reordered(const Problem& problem, bool in_place) {
  if (problem.items.empty()) return problem;
  Orders orders(problem, in_place);
  const auto better = [&](const Order& one, const Order& other) {
    return orders.cost(other) < orders.cost(one) ? other : one;
  };
  Order best = better(orders.delayed(), orders.given());
  const auto take = [&](const Order& order) { best = better(best, order); };
  if (problem.items.size() <= kMostItems) {
    const std::uint64_t bound = order_bound_bytes(problem, in_place);
    const auto is_least = [&] { return orders.cost(best).peak_bytes <= bound; };
    if (!is_least()) {
      const Tasks tasks(problem);
      std::vector<Order> starts = {best, least_growth(tasks), least_growth_backwards(tasks),
                                   deepest_need_first(tasks)};
      for (const Order& start : starts) {
        take(start);
        take(orders.settled(start));
      }
      take(with_best_windows(tasks, best));
    }
    if (!is_least()) take(orders.lowered(best, bound));
  }
  return permuted(problem, best);
}

std::vector<Problem> candidate_orders(const Problem& problem, bool in_place) {
  std::vector<Problem> found = {reordered(problem, in_place)};
  if (problem.items.empty() || problem.items.size() > kMostItems) return found;
  const Orders orders(problem, in_place);
  for (const Order& order : {deepest_need_first(Tasks(problem)), orders.delayed()}) {
    Problem next = permuted(problem, order);
    const auto is_same = [](const Item& one, const Item& other) {
      return one.number == other.number && one.reads == other.reads && one.makes == other.makes;
    };
    const bool is_known = std::ranges::any_of(found, [&](const Problem& known) {
      return std::ranges::equal(known.items, next.items, is_same);
    });
    if (!is_known) found.push_back(std::move(next));
  }
  return found;
}

std::uint64_t peak_bytes(const Problem& problem, bool in_place) {
  Orders orders(problem, in_place);
  return problem.items.empty() ? 0 : orders.cost(orders.given()).peak_bytes;
}

std::uint64_t order_bound_bytes(const Problem& problem, bool in_place) {
  std::uint64_t bound = largest_working_set_bytes(problem);
  const std::size_t count = problem.items.size();
  if (count > kMostBounded) return bound;
  const std::vector<std::uint32_t> maker = problem.makers();
  // By item: its transitive dependencies, itself included.
  std::vector<std::vector<bool>> before(count);
  std::vector<std::vector<std::uint32_t>> readers(problem.values.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i].assign(count, false);
    before[i][i] = true;
    for (std::uint32_t v : problem.items[i].reads) {
      readers[v].push_back(i);
      for (std::size_t k = 0; k < maker[v] + 1; ++k)
        if (before[maker[v]][k]) before[i][k] = true;
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Item& item = problem.items[i];
    std::uint64_t bytes = item.alternatives[0].workspace_bytes;
    for (std::uint32_t v : item.makes) bytes += problem.values[v].bytes;
    const auto is_wanted_after = [&](std::uint32_t v) {
      return problem.values[v].is_output ||
             std::ranges::any_of(readers[v], [&](std::uint32_t reader) {
               return reader != i && before[reader][i];
             });
    };
    for (std::uint32_t v = 0; v < problem.values.size(); ++v) {
      if (problem.values[v].bytes == 0 || maker[v] == i || !before[i][maker[v]]) continue;
      const bool is_read = std::ranges::find(item.reads, v) != item.reads.end();
      if (is_read || is_wanted_after(v)) bytes += problem.values[v].bytes;
    }
    if (in_place) {
      std::vector<std::uint32_t> taken;
      for (const auto& [result, operand] : item.may_share) {
        if (is_wanted_after(operand) || std::ranges::find(taken, result) != taken.end()) continue;
        taken.push_back(result);
        bytes -= std::min(bytes, problem.values[operand].bytes);
      }
    }
    bound = std::max(bound, bytes);
  }
  return bound;
}

}  // namespace tenon::memory
