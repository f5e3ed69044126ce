#include "driver/device_kernels.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/assemble.h"
#include "codegen/select.h"
#include "documents/kernel_choices.h"
#include "expr/analysis.h"
#include "ir/node_rules.h"
#include "passes/train/train.h"
#include "tune/device_tuning.h"
#include "tune/tuner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tenon::driver {
namespace {

constexpr const char* kUntuned = " untuned";

// Keys of the timings of kernels, and of library algorithms.
struct TuningPlaces {
  tune::TuningPlace kernels, ways;
};

// The candidate for a node, and whether all candidates were timed.
struct NodeKernel {
  std::string candidate;
  bool is_timed = true;
};

// Returns whether the node has several candidates: a convolution or product, with or without
// epilogue.
bool has_choice(const Graph& graph, NodeId id) {
  const ValueId result = graph.node(id).results.front();
  return !graph.constant_of(result) && fusion_kind(graph, id) == Fusion::Contraction;
}

std::size_t accepting_count(const codegen::Decision& decision) {
  return static_cast<std::size_t>(std::ranges::count_if(
      decision.candidates,
      [](const codegen::Decision::Candidate& option) { return option.verdict.accepts; }));
}

// Returns the candidates of a graph without symbols by the name of a node's first result: the
// fastest in the cache, or the untimed default.
std::map<std::string, NodeKernel> kernels_of(const Graph& graph, const tune::TuningCache& cache,
                                             const std::optional<TuningPlaces>& places,
                                             codegen::CompileOptions options) {
  options.keeps_record = true;
  if (places) options.choose = tune::tuned_choice(cache, places->kernels);
  const codegen::Selected selected = codegen::select(graph, options);
  Program program = codegen::assemble(selected.tasks, options.target->program_target({}));
  tune::TuneReport ignored;
  if (places) tune::use_tuned_candidates(cache, places->ways, program, ignored);
  std::map<std::string, NodeKernel> found;
  for (const codegen::Decision& decision : selected.decisions) {
    if (!decision.node || !has_choice(graph, decision.node)) continue;
    NodeKernel& node = found[graph.value(graph.node(decision.node).results.front()).name];
    const bool is_known =
        places && (accepting_count(decision) < 2 || cache.find(places->kernels, decision.work));
    node.is_timed = node.is_timed && is_known;
  }
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const auto node = found.find(program.steps[k].value);
    if (node == found.end()) continue;
    // The step with the main work, not one that prepares or finishes it.
    std::string& candidate = node->second.candidate;
    if (candidate.empty() || candidate == "loops") candidate = program.steps[k].candidate;
    const std::optional<std::string> work = tune::library_work(program, k);
    if (work && !(places && cache.find(places->ways, *work))) node->second.is_timed = false;
  }
  return found;
}

// Times the candidates for a graph without symbols, and stores the results.
void profile(const Graph& graph, tune::TuningCache& cache, const TuningPlaces& places,
             codegen::CompileOptions options) {
  tune::TuneOptions settings;
  settings.compile = options;
  tune::tune(graph, cache, settings);
  options.choose = tune::tuned_choice(cache, places.kernels);
  Program program = codegen::compile(graph, options).program;
  tune::tune_on_device(cache, program, true);  // calls without other candidates
}

constexpr std::int64_t kMostExtent = 1024;  // largest value of a symbol for timing

// Returns sample values of a range, the largest last: in powers of two, since the fastest candidate
// depends on proportions.
std::vector<std::int64_t> values_in(const Range& range) {
  constexpr std::size_t kMost = 6;
  std::vector<std::int64_t> values = {std::max(range.lo, std::min(range.hi, kMostExtent))};
  while (values.size() < kMost && values.back() / 2 > range.lo && values.back() > 1)
    values.push_back(values.back() / 2);
  if (values.back() != range.lo) values.push_back(range.lo);
  std::ranges::reverse(values);
  values.back() = range.hi;
  return values;
}

SymbolRanges symbols_of(const Graph& graph) {
  SymbolRanges symbols;
  for (const ValueId input : graph.inputs()) collect_symbols(graph.value(input).type, symbols);
  return symbols;
}

TuningPlaces places_here(const Target& target) {
  return {tune::tuning_place(target, 0), tune::device_place()};
}

// Returns the keys for this machine's device, or for the device with the most of these kernels in
// the cache.
std::optional<TuningPlaces> places_for(const Graph& graph, const tune::TuningCache& cache,
                                       const codegen::CompileOptions& options) {
  try {
    return places_here(*options.target);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Device) throw;
  }
  std::set<std::string> works;
  for (const codegen::Decision& decision : codegen::decide(graph, options))
    works.insert(decision.work);
  std::vector<std::pair<tune::TuningPlace, std::size_t>> places;
  for (const tune::TunedKernel& kernel : cache.all()) {
    if (!works.contains(kernel.work)) continue;
    if (places.empty() || places.back().first != kernel.place) places.emplace_back(kernel.place, 0);
    ++places.back().second;
  }
  const auto most =
      std::ranges::max_element(places, {}, [](const auto& each) { return each.second; });
  if (most == places.end()) return std::nullopt;
  return TuningPlaces{most->first, tune::library_tuning_place(most->first)};
}

}  // namespace

DeviceKernels with_device_kernels(Graph graph, tune::TuningCache& cache,
                                  const codegen::CompileOptions& options, bool times) {
  const SymbolRanges symbols = symbols_of(graph);
  const std::string symbol = symbols.empty() ? "" : symbols.begin()->first;
  const std::vector<std::int64_t> values =
      symbols.empty() ? std::vector<std::int64_t>{0} : values_in(symbols.begin()->second);
  std::map<std::string, documents::KernelChoices> choices;  // by node
  std::map<std::string, bool> is_untuned;
  std::optional<TuningPlaces> places;
  if (times) places = places_here(*options.target);
  std::int64_t lo = symbols.empty() ? 0 : symbols.begin()->second.lo;
  for (const std::int64_t value : values) {
    DimBindings bound;
    for (const auto& [name, range] : symbols) {
      const std::int64_t wanted = name == symbol ? value : range.hi;
      bound[name] = Dim(std::max(range.lo, std::min(wanted, kMostExtent)));
    }
    const Graph fixed = passes::with_symbols(graph, bound);
    if (!places) places = places_for(fixed, cache, options);
    std::map<std::string, NodeKernel> kernels = kernels_of(fixed, cache, places, options);
    const auto is_timed = [](const auto& each) { return each.second.is_timed; };
    if (times && !std::ranges::all_of(kernels, is_timed)) {
      profile(fixed, cache, *places, options);
      kernels = kernels_of(fixed, cache, places, options);
    }
    for (const auto& [node, kernel] : kernels) {
      if (kernel.candidate.empty()) continue;  // it has no step of its own
      is_untuned[node] = is_untuned[node] || !kernel.is_timed;
      documents::KernelChoices& list = choices[node];
      list.symbol = symbol;
      const std::string name =
          kernel.is_timed ? kernel.candidate : concat(kernel.candidate, kUntuned);
      if (!list.choices.empty() && list.choices.back().kernel == name) {
        list.choices.back().hi = value;
      } else {
        list.choices.push_back({lo, value, name});
      }
    }
    lo = value + 1;
  }
  DeviceKernels made{std::move(graph), 0, 0, {}};
  for (const auto& [name, list] : choices) {
    const ValueId result = made.graph.find(name);
    if (!result) continue;
    documents::note_choices(made.graph, result, list);
    ++(is_untuned[name] ? made.untuned : made.timed);
  }
  if (made.timed > 0) made.device = concat(places->ways.machine, " (", places->ways.generator, ")");
  return made;
}

}  // namespace tenon::driver
