#include "driver/tuned_kernels.h"

#include "documents/kernel_choices.h"
#include "driver/compile.h"

#include <set>

namespace tenon::driver {

Graph with_tuned_kernels(Graph graph, const tune::TuningCache& cache, int threads) {
  const codegen::CompileOptions options = cpu_options();
  const tune::TuningPlace place = tune::tuning_place(*options.target, threads);
  std::set<NodeId> done;
  for (const codegen::Decision& decision : tune::decide_nodes(graph, options)) {
    // A node of several nests is identified by the first one, the main reduction.
    if (!decision.node || done.contains(decision.node)) continue;
    const std::optional<tune::TunedKernel> kernel = cache.find(place, decision.work);
    if (!kernel) continue;
    documents::KernelChoices choices{kernel->symbol, {}};
    for (const auto& [lo, hi, candidate] : kernel->ranges)
      choices.choices.push_back({lo, hi, candidate});
    documents::note_choices(graph, graph.node(decision.node).results.front(), choices);
    done.insert(decision.node);
  }
  return graph;
}

}  // namespace tenon::driver
