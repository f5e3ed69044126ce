// Rematerialization and offload planning by simulated annealing over exact lifetimes.
#include "memory/search.h"

#include "memory/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::memory {
namespace {

// Total items visited by annealing steps; the problem size from which a problem counts as large.
constexpr std::uint64_t kWork = 40'000'000, kLarge = 300;

class AnnealingRandom {
 public:
  explicit AnnealingRandom(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() >> 11) % count; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

struct Solution {
  std::vector<Residency> residencies;
  Evaluator::Outcome outcome;
};

class Annealing {
 public:
  Annealing(const Problem& problem, const SearchOptions& options)
      : problem_(problem),
        options_(options),
        evaluator_(problem, options.in_place),
        base_seconds_(std::max(problem.seconds(), 1e-12)) {
    for (std::uint32_t gap = 0; gap < evaluator_.gaps().size(); ++gap) {
      if (problem.values[evaluator_.gaps()[gap].value].bytes == 0) continue;
      std::vector<Residency> alternatives;
      if (options.may_recompute && evaluator_.may_recompute(gap)) {
        alternatives.push_back(Residency::RecomputeOnce);
        alternatives.push_back(Residency::RecomputePerUse);
      }
      if (options.may_swap && problem.link && evaluator_.may_swap(gap)) {
        alternatives.push_back(Residency::Offload);
      }
      if (alternatives.empty()) continue;
      alternatives.push_back(Residency::Keep);
      gaps_.push_back(gap);
      ways_.push_back(std::move(alternatives));
    }
  }

  // `starts`: initial residencies in addition to keeping every value.
  SearchResult run(const std::vector<std::vector<Residency>>& starts = {}) {
    SearchResult result;
    std::uint64_t budget = options_.budget_bytes;
    const std::vector<Residency> keep = evaluator_.all_kept();
    consider(keep, evaluate(keep, budget), budget);
    // If all values fit, no plan is faster.
    if (!pool_.empty() && try_to_place(result)) return finished(std::move(result));
    pool_.clear();
    // A provably impossible budget gets one short walk, to report the smallest feasible size.
    const bool is_hopeless = largest_working_set_bytes(problem_) > budget;
    const int restarts = options_.restarts > 0 ? options_.restarts : is_hopeless ? 1 : kRestarts;
    const std::uint64_t steps = options_.step_limit > 0 ? options_.step_limit
                                : is_hopeless           ? default_steps() / kShort
                                                        : default_steps();
    // A copy either overlaps with work or does not, which creates many local minima: some are found
    // by short walks only, others by long ones.
    const std::uint64_t long_steps = std::min(kLongSteps, kLongWork / size());
    const bool goes_far = options_.may_swap && problem_.link && options_.step_limit == 0 &&
                          options_.restarts == 0 && long_steps > steps && !is_hopeless;
    const bool is_large = size() > kLarge && options_.may_recompute && !options_.may_swap;
    // If the best choices cannot be placed within the budget, searches for choices with fewer live
    // bytes.
    for (int tightening = 0; tightening < (size() > kLarge ? 6 : 4) && !is_stopped_; ++tightening) {
      if (tightening > 0 && size() > kLarge) {
        // The best plan is slightly too large: one walk starts from it.
        const std::vector<Residency> last = pool_.front().residencies;
        pool_.clear();
        anneal(last, budget, steps, static_cast<std::uint64_t>(tightening), kWarm);
        if (try_to_place(result) || pool_.empty()) break;
        budget -= std::max<std::uint64_t>(options_.budget_bytes / 100, 1);
        continue;
      }
      pool_.clear();
      const int walks = gaps_.empty() ? 0 : goes_far ? 2 * restarts : restarts;
      for (int walk = 0; walk < walks && !is_stopped_; ++walk) {
        const int restart = walk % restarts;
        // If one walk through a large problem ended far above the budget, further walks are
        // skipped.
        if (walk > 0 && size() > kLarge && pool_.empty() && is_far_from(budget)) break;
        if (is_large && restart == restarts - 1) {
          anneal(greedy(keep, budget), budget, steps,
                 static_cast<std::uint64_t>(tightening * 64 + restart), kWarm);
          continue;
        }
        // Small problems always start from keeping every value.
        const auto start = static_cast<std::size_t>(restart - 1);
        anneal(restart == 0 && options_.may_swap          ? all_swapped(keep)
               : size() > kLarge && start < starts.size() ? starts[start]
                                                          : keep,
               budget, walk < restarts ? steps : long_steps,
               static_cast<std::uint64_t>(tightening * 64 + restart));
      }
      if (pool_.empty() && !gaps_.empty() && !is_hopeless) insist(budget, steps);
      if (try_to_place(result)) break;
      if (pool_.empty()) break;
      budget -= std::max<std::uint64_t>(options_.budget_bytes / 200, 1);
    }
    if (!result.is_within_budget) settle_for_smallest(result, is_hopeless);
    return finished(std::move(result));
  }

 private:
  SearchResult finished(SearchResult result) const {
    result.gaps = evaluator_.gaps();
    result.evaluation_count = evaluation_count_;
    result.was_stopped = is_stopped_;
    return result;
  }

  bool is_far_from(std::uint64_t budget) const {
    return smallest_.outcome.peak_bytes > budget / 4 * 5;
  }

  // Restarts from the smallest plan with a higher penalty on the excess. For problems where saving
  // memory costs more time than the penalty, so that no walk reached the budget.
  void insist(std::uint64_t budget, std::uint64_t steps) {
    for (const double price : {4.0, 16.0}) {
      if (is_stopped_ || !pool_.empty() || (price < 16 && is_far_from(budget))) continue;
      price_ = price;
      anneal(std::vector(smallest_.residencies), budget, steps, static_cast<std::uint64_t>(price),
             kWarm);
    }
  }

  std::uint64_t size() const { return std::max<std::size_t>(problem_.items.size(), 1); }
  // One step visits all events; large problems get fewer steps.
  std::uint64_t default_steps() const {
    return std::clamp<std::uint64_t>(kWork / size(), 1'500, kMostSteps);
  }

  std::vector<Residency> all_swapped(std::vector<Residency> residencies) const {
    for (std::size_t k = 0; k < gaps_.size(); ++k) {
      const bool may_swap =
          std::find(ways_[k].begin(), ways_[k].end(), Residency::Offload) != ways_[k].end();
      if (may_swap) residencies[gaps_[k]] = Residency::Offload;
    }
    return residencies;
  }

  Evaluator::Outcome evaluate(const std::vector<Residency>& residencies, std::uint64_t budget) {
    if (++evaluation_count_ % kReported == 0) report();
    return evaluator_.evaluate(residencies, budget);
  }

  void report() {
    if (!options_.goes_on || is_stopped_) return;
    SearchProgress progress;
    progress.evaluation_count = evaluation_count_;
    progress.seconds =
        pool_.empty() ? std::numeric_limits<double>::infinity() : pool_.front().outcome.seconds;
    progress.smallest_bytes = smallest_.outcome.peak_bytes;
    is_stopped_ = !options_.goes_on(progress);
  }

  double energy(const Evaluator::Outcome& outcome, std::uint64_t budget) const {
    const double over = outcome.peak_bytes > budget
                            ? static_cast<double>(outcome.peak_bytes - budget) /
                                  static_cast<double>(std::max<std::uint64_t>(budget, 1))
                            : 0;
    return merit(outcome) + price_ * over;
  }

  // Among plans of equal time, fewer live bytes are easier to place. Without copies few plans have
  // equal time, and this term would only distract from the fastest.
  double merit(const Evaluator::Outcome& outcome) const {
    const double pull = options_.may_swap ? kPull : 0;
    return outcome.seconds / base_seconds_ +
           pull * static_cast<double>(outcome.peak_bytes) /
               static_cast<double>(std::max<std::uint64_t>(options_.budget_bytes, 1));
  }

  void consider(const std::vector<Residency>& residencies, const Evaluator::Outcome& outcome,
                std::uint64_t budget) {
    if (smallest_.residencies.empty() || outcome.peak_bytes < smallest_.outcome.peak_bytes) {
      smallest_ = {residencies, outcome};
    }
    if (outcome.peak_bytes > budget) return;
    if (pool_.size() == kPool && merit(outcome) >= merit(pool_.back().outcome)) return;
    const auto position = std::upper_bound(
        pool_.begin(), pool_.end(), merit(outcome),
        [&](double value, const Solution& choice) { return value < merit(choice.outcome); });
    for (const Solution& choice : pool_) {
      if (choice.residencies == residencies) return;
    }
    pool_.insert(position, {residencies, outcome});
    if (pool_.size() > kPool) pool_.pop_back();
  }

  // Evicts values live at the peak one by one, each time the one with the least recomputation time
  // per byte. Random walks through large problems would take long to get there.
  std::vector<Residency> greedy(std::vector<Residency> state, std::uint64_t budget) {
    const std::vector<UseGap>& gaps = evaluator_.gaps();
    Evaluator::Outcome now = evaluate(state, budget);
    evaluator_.keep();
    for (std::size_t step = 0; step < 2 * gaps_.size() && now.peak_bytes > budget; ++step) {
      if (is_stopped_) break;
      const std::uint32_t peak = evaluator_.peak_item();
      std::vector<std::pair<double, std::uint32_t>> candidates;
      for (const std::uint32_t k : gaps_) {
        const bool crosses = gaps[k].last_use < peak && gaps[k].next_use > peak;
        if (!crosses || state[k] != Residency::Keep || !evaluator_.may_recompute(k)) continue;
        const auto bytes = static_cast<double>(problem_.values[gaps[k].value].bytes);
        candidates.emplace_back(evaluator_.recompute_seconds(k) / bytes, k);
      }
      if (candidates.empty()) break;
      const std::size_t tried = std::min(kTried, candidates.size());
      std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried),
                        candidates.end());
      double best = 0;
      std::uint32_t chosen = candidates[0].second;
      for (std::size_t k = 0; k < tried; ++k) {
        state[candidates[k].second] = Residency::RecomputeOnce;
        const Evaluator::Outcome then = evaluate(state, budget);
        state[candidates[k].second] = Residency::Keep;
        const double gained =
            (energy(now, budget) - energy(then, budget)) /
            static_cast<double>(problem_.values[gaps[candidates[k].second].value].bytes);
        if (k > 0 && gained <= best) continue;
        best = gained;
        chosen = candidates[k].second;
      }
      state[chosen] = Residency::RecomputeOnce;
      now = evaluate(state, budget);
      evaluator_.keep();
      consider(state, now, budget);
    }
    return state;
  }

  void anneal(std::vector<Residency> state, std::uint64_t budget, std::uint64_t steps,
              std::uint64_t seed, double hot = kHot) {
    AnnealingRandom random(seed + 17);
    Evaluator::Outcome outcome = evaluate(state, budget);
    evaluator_.keep();
    double now = energy(outcome, budget);
    std::vector<std::pair<std::uint32_t, Residency>> undo;
    for (std::uint64_t step = 0; step < steps && !is_stopped_; ++step) {
      const double progress = static_cast<double>(step) / static_cast<double>(steps);
      const double temperature = hot * std::pow(std::min(kCold, hot / 10) / hot, progress);
      undo.clear();
      const auto change = [&](std::size_t k) {
        const std::uint32_t gap = gaps_[k];
        const Residency before = state[gap];
        Residency residency = before;
        while (residency == before) residency = ways_[k][random.below(ways_[k].size())];
        undo.emplace_back(gap, before);
        state[gap] = residency;
      };
      const std::size_t first = random.below(gaps_.size());
      change(first);
      // Two simultaneous changes swap the residencies of two values, often of neighbors.
      const double kind = random.unit();
      if (gaps_.size() > 1 && kind < 0.5) {
        std::size_t second = random.below(gaps_.size());
        if (kind < 0.25) second = (first + 1 + random.below(6)) % gaps_.size();
        if (second != first) change(second);
      }
      outcome = evaluate(state, budget);
      const double then = energy(outcome, budget);
      if (then <= now || random.unit() < std::exp((now - then) / temperature)) {
        now = then;
        evaluator_.keep();
        consider(state, outcome, budget);
      } else {
        for (const auto& [gap, residency] : undo) state[gap] = residency;
      }
    }
  }

  bool try_to_place(SearchResult& result) {
    // Plans of a large problem are similar: a few placements are representative.
    const std::size_t tried = size() > kLarge ? kTriedOfLarge : kPool;
    for (std::size_t k = 0; k < std::min(tried, pool_.size()); ++k) {
      const Solution& choice = pool_[k];
      evaluate(choice.residencies, options_.budget_bytes);
      const std::uint64_t live = max_live_bytes(
          arena_buffers(lifetimes_of(problem_, evaluator_.events(), options_.in_place)),
          options_.place.alignment);
      if (live > options_.budget_bytes) continue;
      Plan plan =
          planned(problem_, evaluator_.events(), place_options(kPlaceNodes), options_.in_place);
      if (plan.arena_bytes > options_.budget_bytes) continue;
      result.plan = std::move(plan);
      result.residencies = choice.residencies;
      result.is_within_budget = true;
      return true;
    }
    return false;
  }

  // A node of branch and bound visits all buffers: larger problems get fewer nodes.
  PlaceOptions place_options(std::uint64_t most_nodes) const {
    PlaceOptions place = options_.place;
    place.capacity = options_.budget_bytes;
    place.node_limit =
        std::min({place.node_limit, most_nodes, most_nodes * kPlaceBuffers / size()});
    return place;
  }

  void settle_for_smallest(SearchResult& result, bool is_hopeless) {
    evaluate(smallest_.residencies, options_.budget_bytes);
    result.plan =
        planned(problem_, evaluator_.events(),
                place_options(is_hopeless ? kPlaceNodes : kLastPlaceNodes), options_.in_place);
    result.residencies = smallest_.residencies;
    result.is_within_budget = result.plan.arena_bytes <= options_.budget_bytes;
  }

  static constexpr int kRestarts = 3;
  static constexpr std::uint64_t kReported = 1000;
  static constexpr std::uint64_t kShort = 10;
  static constexpr std::uint64_t kMostSteps = 60'000, kLongSteps = 200'000;
  static constexpr std::uint64_t kLongWork = 30'000'000;
  static constexpr std::size_t kPool = 24, kTriedOfLarge = 8;
  static constexpr std::uint64_t kPlaceNodes = 30'000;  // For each of them.
  static constexpr std::uint64_t kLastPlaceNodes = 300'000, kPlaceBuffers = 400;
  static constexpr double kPull = 1e-3, kHot = 0.01, kWarm = 3e-4, kCold = 1e-4;
  static constexpr std::size_t kTried = 3;

  const Problem& problem_;
  const SearchOptions& options_;
  Evaluator evaluator_;
  double base_seconds_;
  std::vector<std::uint32_t> gaps_;           // Gaps with an alternative to Keep.
  std::vector<std::vector<Residency>> ways_;  // By position in gaps_.
  std::vector<Solution> pool_;                // Within the budget, fastest first.
  Solution smallest_;
  std::uint64_t evaluation_count_ = 0;
  bool is_stopped_ = false;
  double price_ = 1;  // Penalty of a plan at twice the budget, in multiples of the base time.
};

// Returns whether `other` is preferred: within the budget, then faster; otherwise smaller.
bool is_better(const SearchResult& other, const SearchResult& best) {
  if (other.is_within_budget)
    return !best.is_within_budget || other.plan.seconds < best.plan.seconds;
  return !best.is_within_budget && other.plan.arena_bytes < best.plan.arena_bytes;
}

}  // namespace

SearchResult search(const Problem& problem, const SearchOptions& options) {
  if (!options.may_swap || !options.may_recompute || !problem.link)
    return Annealing(problem, options).run();
  // The result is never worse than recomputation or offload alone; for large problems, walks start
  // from the two single-policy results.
  SearchOptions shared = options;
  if (problem.items.size() > kLarge && options.step_limit == 0)
    shared.step_limit = std::max<std::uint64_t>(kWork / 3 / problem.items.size(), 1'500);
  SearchOptions alone = shared;
  alone.may_swap = false;
  SearchResult best = Annealing(problem, alone).run();
  alone.may_swap = true;
  alone.may_recompute = false;
  const auto consider = [&](SearchResult other) {
    other.evaluation_count = best.evaluation_count += other.evaluation_count;
    other.was_stopped = best.was_stopped = best.was_stopped || other.was_stopped;
    if (is_better(other, best)) best = std::move(other);
  };
  if (best.was_stopped) return best;
  const std::vector<Residency> recomputed = best.residencies;
  SearchResult swapped = Annealing(problem, alone).run();
  const std::vector<std::vector<Residency>> starts = {recomputed, swapped.residencies};
  consider(std::move(swapped));
  const bool is_free = best.is_within_budget && best.plan.seconds <= problem.seconds();
  if (is_free || best.was_stopped) return best;
  consider(Annealing(problem, shared).run(starts));
  return best;
}

OrderedResult search_orders(std::span<const Problem> orders, const SearchOptions& options,
                            bool is_thorough) {
  constexpr double kFree = 1.01;  // A plan within 1 % of the unconstrained time ends the search.
  SearchOptions of_order = options;
  std::size_t order = 0;
  if (options.goes_on) {
    of_order.goes_on = [&](SearchProgress progress) {
      progress.order = order;
      progress.order_count = orders.size();
      return options.goes_on(progress);
    };
  }
  OrderedResult best{0, search(orders.front(), of_order)};
  // If one item alone exceeds the budget, no order helps.
  if (largest_working_set_bytes(orders.front()) > options.budget_bytes) return best;
  for (order = 1; order < orders.size() && !best.result.was_stopped; ++order) {
    const bool is_free = best.result.plan.seconds <= kFree * orders[order].seconds();
    if (best.result.is_within_budget && (is_free || !is_thorough)) break;
    SearchResult other = search(orders[order], of_order);
    other.evaluation_count = best.result.evaluation_count += other.evaluation_count;
    best.result.was_stopped = other.was_stopped;
    if (is_better(other, best.result)) best = {order, std::move(other)};
  }
  return best;
}

}  // namespace tenon::memory
