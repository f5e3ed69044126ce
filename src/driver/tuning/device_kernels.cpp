#include "driver/tuning/device_kernels.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "driver/tuning/device_ways.h"
#include "frontends/aitemplate/kernel_choices.h"
#include "frontends/own_node.h"
#include "ir/node_rules.h"
#include "ops/analysis.h"
#include "passes/train/train.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace tenon {
namespace {

constexpr const char* kWorkMark = "node ";
constexpr const char* kUntuned = " untuned";
constexpr int kProfiledRuns = 8;

struct NamedWork {
  std::string name;  // of its first result
  std::string work;
};

// Convolutions and products, alone or with what follows: others have no kernels to choose from.
std::vector<NamedWork> nodes_of(const Graph& graph) {
  std::vector<NamedWork> nodes;
  for (const NodeId id : graph.nodes_in_order()) {
    const ValueId result = graph.node(id).results.front();
    if (graph.constant_of(result) || fusion_kind(graph, id) != Fusion::Contraction) continue;
    nodes.push_back({graph.value(result).name, device_work(graph, id)});
  }
  return nodes;
}

// By node: the step that does its work, and not what prepares or finishes it.
std::map<std::string, std::string> candidates_of(const Program& program) {
  std::map<std::string, std::string> found;
  for (const Program::Step& step : program.steps) {
    std::string& candidate = found[step.value];
    if (candidate.empty() || candidate == "loops") candidate = step.candidate;
  }
  return found;
}

codegen::CompileOptions with_architecture(codegen::CompileOptions options,
                                          const std::string& architecture) {
  options.device->architecture = architecture;
  return options;
}

// With kernels on tensor cores of our own, and without: then libraries have that work.
std::vector<codegen::CompileOptions> variants_of(const codegen::CompileOptions& options) {
  std::vector<codegen::CompileOptions> variants = {options};
  std::string architecture = options.device->architecture;
  if (!options.device->has_wgmma() || !options.device->uses_libraries) return variants;
  architecture.pop_back();
  variants.push_back(with_architecture(options, architecture));
  return variants;
}

// Times every node of a graph without symbols, and keeps what came out.
void profile(const Graph& graph, TuningCache& cache, const TuningPlace& place,
             const codegen::CompileOptions& options) {
  std::map<std::string, std::vector<TunedKernel::Timing>> timings;  // by node
  for (const codegen::CompileOptions& variant : variants_of(options)) {
    Program program = codegen::compile(graph, variant);
    tune_on_device(cache, program, true);
    const std::map<std::string, std::string> candidates = candidates_of(program);
    CompiledModel model(std::move(program), 1);
    model.prepare(random_inputs(input_ports(model.program()), 1, {}));
    model.run_prepared();
    std::map<std::string, double> seconds;
    for (const StepTime& step : model.timed_steps(kProfiledRuns))
      seconds[step.value] += step.seconds;
    for (const auto& [name, candidate] : candidates) {
      const double each = seconds[name] / kProfiledRuns;
      std::vector<TunedKernel::Timing>& list = timings[name];
      if (each > 0 &&
          std::ranges::find(list, candidate, &TunedKernel::Timing::candidate) == list.end())
        list.push_back({candidate, 0, each, kProfiledRuns});
    }
  }
  for (const NamedWork& node : nodes_of(graph)) {
    const auto found = timings.find(node.name);
    if (found == timings.end() || found->second.empty()) continue;
    TunedKernel kernel;
    kernel.place = place;
    kernel.work = node.work;
    kernel.name = node.name;
    kernel.timings = found->second;
    const auto best = std::ranges::min_element(kernel.timings, {}, &TunedKernel::Timing::seconds);
    kernel.ranges = {{0, 0, best->candidate}};
    cache.store(kernel);
  }
}

constexpr std::int64_t kMostExtent = 1024;  // that a symbol has when it is timed

// Some values of a range, the greatest last: doubling, as what is fastest changes with proportions.
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

// The device that is here; else the one that the cache knows most of these nodes from.
std::optional<TuningPlace> place_for(const std::vector<NamedWork>& nodes,
                                     const TuningCache& cache) {
  try {
    return device_place();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Device) throw;
  }
  std::vector<std::pair<TuningPlace, std::size_t>> places;
  for (const TunedKernel& kernel : cache.all()) {
    if (!kernel.work.starts_with(kWorkMark)) continue;
    if (places.empty() || places.back().first != kernel.place) places.emplace_back(kernel.place, 0);
    places.back().second += std::ranges::count(nodes, kernel.work, &NamedWork::work) > 0 ? 1 : 0;
  }
  const auto most =
      std::ranges::max_element(places, {}, [](const auto& each) { return each.second; });
  if (most == places.end() || most->second == 0) return std::nullopt;
  return most->first;
}

}  // namespace

std::string device_work(const Graph& graph, NodeId node) {
  return concat(kWorkMark, own_node(graph, node).text);
}

DeviceKernels with_device_kernels(Graph graph, TuningCache& cache,
                                  const codegen::CompileOptions& options, bool times) {
  const SymbolRanges symbols = symbols_of(graph);
  const std::string symbol = symbols.empty() ? "" : symbols.begin()->first;
  const std::vector<std::int64_t> values =
      symbols.empty() ? std::vector<std::int64_t>{0} : values_in(symbols.begin()->second);
  std::map<std::string, aitemplate::KernelChoices> choices;  // by node
  std::map<std::string, bool> is_untuned;
  std::optional<TuningPlace> place;
  std::int64_t lo = symbols.empty() ? 0 : values.front();
  for (const std::int64_t value : values) {
    DimBindings bound;
    for (const auto& [name, range] : symbols) {
      const std::int64_t wanted = name == symbol ? value : range.hi;
      bound[name] = Dim(std::max(range.lo, std::min(wanted, kMostExtent)));
    }
    const Graph fixed = with_symbols(graph, bound);
    const std::vector<NamedWork> nodes = nodes_of(fixed);
    if (!place) place = times ? device_place() : place_for(nodes, cache);
    const auto is_known = [&](const NamedWork& node) {
      return place && cache.find(*place, node.work);
    };
    if (times && !std::ranges::all_of(nodes, is_known)) profile(fixed, cache, *place, options);
    std::optional<std::map<std::string, std::string>> untimed;
    for (const NamedWork& node : nodes) {
      const auto known = place ? cache.find(*place, node.work) : std::nullopt;
      if (!known && !untimed) untimed = candidates_of(codegen::compile(fixed, options));
      const std::string kernel = known ? known->ranges.front().candidate : (*untimed)[node.name];
      if (kernel.empty()) continue;  // it has no step of its own
      is_untuned[node.name] = is_untuned[node.name] || !known;
      aitemplate::KernelChoices& list = choices[node.name];
      list.symbol = symbol;
      const std::string name = known ? kernel : concat(kernel, kUntuned);
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
    aitemplate::note_choices(made.graph, result, list);
    ++(is_untuned[name] ? made.untuned : made.timed);
  }
  if (made.timed > 0) made.device = concat(place->machine, " (", place->generator, ")");
  return made;
}

}  // namespace tenon
