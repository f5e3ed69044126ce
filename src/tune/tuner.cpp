#include "tune/tuner.h"

#include "base/error.h"
#include "expr/access.h"
#include "models/extract_node.h"
#include "runtime/processors.h"
#include "tune/device_tuning.h"
#include "tune/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

namespace tenon::tune {
namespace {

using codegen::Decision;
using Clock = std::chrono::steady_clock;

// Required speedup over the candidate with the lowest estimate; a smaller one may be noise.
constexpr double kFaster = 0.97;

std::vector<std::size_t> accepting(const Decision& decision) {
  std::vector<std::size_t> list;
  for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
    if (decision.candidates[k].verdict.accepts) list.push_back(k);
  }
  return list;
}

// Returns the symbol to tune over: the first one in the graph's inputs.
std::string leading_symbol(const Graph& graph, const Decision& decision) {
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (!type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) {
      const auto name = dim.symbol_name();
      if (name && decision.symbols.contains(*name)) return *name;
    }
  }
  return "";
}

bool is_known(const TuningCache& cache, const TuningPlace& place, const Decision& decision) {
  const std::optional<TunedKernel> kernel = cache.find(place, decision.work);
  if (!kernel) return false;
  std::set<std::string> timed;
  for (const TunedKernel::Timing& timing : kernel->timings) timed.insert(timing.candidate);
  const std::vector<std::size_t> candidates = accepting(decision);
  return std::all_of(candidates.begin(), candidates.end(),
                     [&](std::size_t k) { return timed.contains(decision.candidates[k].name); });
}

// Finds the fastest candidates for one nest; no result if interrupted.
class TuningSearch {
 public:
  TuningSearch(const Graph& graph, const Decision& decision, const TuneOptions& options,
               KernelTimer::Settings settings)
      : decision_(decision), options_(options), timer_(graph, decision, std::move(settings)) {
    kernel_.work = decision.work;
    kernel_.name = decision.name;
    kernel_.symbol = leading_symbol(graph, decision);
    kernel_.flops = decision.flops;
  }

  std::optional<TunedKernel> run() {
    if (kernel_.symbol.empty()) {
      const std::size_t best = winner(0, accepting(decision_));
      add_range(0, 0, best);
    } else {
      find_ranges();
    }
    if (was_interrupted_) return std::nullopt;
    return std::move(kernel_);
  }

 private:
  // Times both ends and the middle, then finds the crossover between two winners by bisection,
  // timing only these two.
  void find_ranges() {
    const Range range = decision_.symbols.at(kernel_.symbol);
    const std::int64_t least = std::max<std::int64_t>(range.lo, 1);
    const std::int64_t most =
        timer_.greatest_value(kernel_.symbol, least, std::max(range.hi, least));
    std::vector<std::int64_t> points{least};
    for (const std::int64_t middle : {least * 8, most / 8}) {
      if (middle > points.back() && middle < most) points.push_back(middle);
    }
    if (most > least) points.push_back(most);
    std::vector<std::size_t> winners;
    for (const std::int64_t point : points) winners.push_back(winner(point, accepting(decision_)));
    std::int64_t begin = range.lo;
    for (std::size_t k = 0; k + 1 < points.size() && !was_interrupted_; ++k) {
      if (winners[k] == winners[k + 1]) continue;
      const std::int64_t first = switch_point(points[k], points[k + 1], winners[k], winners[k + 1]);
      add_range(begin, first - 1, winners[k]);
      begin = first;
    }
    add_range(begin, range.hi, winners.back());
  }

  // Returns the first value from which on `after` is as fast as `before`.
  std::int64_t switch_point(std::int64_t lo, std::int64_t hi, std::size_t before,
                            std::size_t after) {
    while (hi - lo > std::max<std::int64_t>(1, lo / 16) && !was_interrupted_) {
      const std::int64_t middle = lo + (hi - lo) / 2;
      (winner(middle, {before, after}) == after ? hi : lo) = middle;
    }
    return hi;
  }

  std::size_t winner(std::int64_t at, const std::vector<std::size_t>& candidates) {
    if (was_interrupted_) return candidates.front();
    const auto measures = timer_.measure(candidates, kernel_.symbol, at, options_.is_interrupted);
    was_interrupted_ = options_.is_interrupted && options_.is_interrupted();
    if (was_interrupted_) return candidates.front();
    for (const std::size_t candidate : candidates) {
      const KernelTimer::Measure& measure = measures.at(candidate);
      if (std::isfinite(measure.seconds))
        kernel_.timings.push_back(
            {decision_.candidates[candidate].name, at, measure.seconds, measure.runs});
    }
    const auto cost = [&](std::size_t k) { return decision_.candidates[k].verdict.cost; };
    std::size_t best =
        *std::min_element(candidates.begin(), candidates.end(),
                          [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
    const double usual = measures.at(best).seconds;
    for (const std::size_t candidate : candidates) {
      const double least = std::min(measures.at(best).seconds, usual * kFaster);
      if (measures.at(candidate).seconds < least) best = candidate;
    }
    return best;
  }

  void add_range(std::int64_t lo, std::int64_t hi, std::size_t candidate) {
    const std::string& name = decision_.candidates[candidate].name;
    if (!kernel_.ranges.empty() && kernel_.ranges.back().candidate == name) {
      kernel_.ranges.back().hi = hi;
    } else {
      kernel_.ranges.push_back({lo, hi, name});
    }
  }

  const Decision& decision_;
  const TuneOptions& options_;
  KernelTimer timer_;
  TunedKernel kernel_;
  bool was_interrupted_ = false;
};

std::size_t constant_bytes(const Graph& graph) {
  double bytes = 0;
  for (const NodeId node : graph.nodes_in_order()) {
    const ValueId result = graph.node(node).results.front();
    if (graph.constant_of(result) != nullptr) bytes += size_hint_bytes(graph.value(result).type);
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace

TuningPlace tuning_place(const Target& target, int threads) {
  if (target.spec().is_gpu()) threads = 1;
  return {target.machine_name(), target.generator_name(), threads > 0 ? threads : usable_threads()};
}

std::vector<Decision> decide_nodes(const Graph& graph, const codegen::CompileOptions& options) {
  std::vector<Decision> decisions;
  for (const NodeId node : graph.nodes_in_order()) {
    const ValueId result = graph.node(node).results.front();
    if (!result || graph.constant_of(result) != nullptr) continue;
    try {
      for (Decision& decision : codegen::decide(models::extract_node(graph, node), options)) {
        decision.node = node;
        decisions.push_back(std::move(decision));
      }
    } catch (const Error&) {
      // No kernel computes it.
    }
  }
  return decisions;
}

TuneReport tune(const Graph& graph, TuningCache& cache, const TuneOptions& options) {
  const auto begin = Clock::now();
  const TuningPlace place = tuning_place(*options.compile.target, options.threads);
  codegen::CompileOptions compile = options.compile;
  compile.choose = {};
  const std::vector<Decision> decisions = decide_nodes(graph, compile);
  // Each distinct work once, by total time.
  std::map<std::string, double> weights;
  std::vector<const Decision*> works;
  for (const Decision& decision : decisions) {
    if (accepting(decision).size() < 2) continue;
    const auto [found, is_new] = weights.try_emplace(decision.work, 0);
    found->second +=
        decision.has_estimates
            ? decision.candidates[decision.selection.versions.front().candidate].verdict.cost
            : decision.flops;
    if (is_new) works.push_back(&decision);
  }
  std::stable_sort(works.begin(), works.end(), [&](const Decision* a, const Decision* b) {
    return weights[a->work] > weights[b->work];
  });
  TuneReport report;
  report.kernels = works.size();
  const KernelTimer::Settings settings{compile, place.threads, constant_bytes(graph), &cache,
                                       options.ready};
  for (const Decision* decision : works) {
    if (is_known(cache, place, *decision)) {
      ++report.known;
      continue;
    }
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    if (elapsed.count() > options.seconds) continue;  // known kernels are still counted
    report.was_interrupted =
        report.was_interrupted || (options.is_interrupted && options.is_interrupted());
    if (report.was_interrupted) continue;
    if (options.on_kernel)
      options.on_kernel(report.known + report.timed + report.failed, works.size(), decision->name);
    try {
      std::optional<TunedKernel> kernel = TuningSearch(graph, *decision, options, settings).run();
      if (!kernel) {
        report.was_interrupted = true;
        continue;
      }
      kernel->place = place;
      cache.store(*kernel);
      ++report.timed;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Device && !compile.target->spec().is_gpu()) throw;
      ++report.failed;  // the estimate decides
    }
  }
  if (options.on_kernel)
    options.on_kernel(report.known + report.timed + report.failed, works.size(), "");
  return report;
}

namespace {

// Formats the fastest timings without a symbol: "tuned: 12.1 us, cudnn 15.3".
std::string timed_text(const TunedKernel& kernel) {
  std::set<std::string> names;
  for (const TunedKernel::Timing& timing : kernel.timings) names.insert(timing.candidate);
  constexpr std::size_t kMostNamed = 4;
  if (!kernel.symbol.empty() || names.size() > kMostNamed)
    return concat("the fastest of ", names.size(), " that were timed");
  std::vector<TunedKernel::Timing> timings = kernel.timings;
  std::ranges::stable_sort(timings, {}, [&](const TunedKernel::Timing& timing) {
    return std::make_pair(timing.candidate != kernel.ranges.front().candidate, timing.seconds);
  });
  std::string text = "tuned: ";
  for (const TunedKernel::Timing& timing : timings) {
    const bool is_first = &timing == &timings.front();
    char us[32];
    std::snprintf(us, sizeof us, "%.1f", timing.seconds * 1e6);
    text += is_first ? concat(us, " us") : concat(", ", timing.candidate, " ", us);
  }
  return text;
}

}  // namespace

std::function<std::optional<codegen::Selection>(const Decision&)> tuned_choice(
    const TuningCache& cache, TuningPlace place) {
  return [&cache,
          place = std::move(place)](const Decision& decision) -> std::optional<codegen::Selection> {
    const std::optional<TunedKernel> kernel = cache.find(place, decision.work);
    if (!kernel) return std::nullopt;
    const auto candidate_named = [&](const std::string& name) -> std::optional<std::size_t> {
      for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
        if (decision.candidates[k].name == name && decision.candidates[k].verdict.accepts) return k;
      }
      return std::nullopt;
    };
    // Fastest applicable candidate within a range whose winner does not accept.
    const auto next_best = [&](const TunedKernel::Range& range) {
      std::optional<std::size_t> best;
      double least = 0;
      for (const TunedKernel::Timing& timing : kernel->timings) {
        const auto candidate = candidate_named(timing.candidate);
        if (!candidate || timing.at < range.lo || timing.at > range.hi) continue;
        if (!best || timing.seconds < least) {
          best = candidate;
          least = timing.seconds;
        }
      }
      return best;
    };
    codegen::Selection selection;
    selection.why = timed_text(*kernel);
    for (const TunedKernel::Range& range : kernel->ranges) {
      auto candidate = candidate_named(range.candidate);
      if (!candidate) candidate = next_best(range);
      if (!candidate) return std::nullopt;
      selection.versions.push_back({*candidate, kernel->symbol, range.lo, range.hi});
    }
    if (kernel->symbol.empty() || selection.versions.size() == 1) {
      selection.versions = {{selection.versions.front().candidate}};
      return selection;
    }
    // The ranges in the file must cover those of the decision.
    const auto symbol = decision.symbols.find(kernel->symbol);
    if (symbol == decision.symbols.end() || selection.versions.front().lo > symbol->second.lo ||
        selection.versions.back().hi < symbol->second.hi) {
      return std::nullopt;
    }
    return selection;
  };
}

}  // namespace tenon::tune
