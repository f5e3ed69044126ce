#include "expr/access.h"
#include "expr/analysis.h"
#include "memory/liveness.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "planning/problem_of.h"

#include <algorithm>

namespace tenon::planning {
namespace {

double usual(const Dim& dim) { return size_hint(dim); }

}  // namespace

memory::Problem problem_of(const Graph& graph, const memory::DeviceSpec& device) {
  memory::Problem problem = memory::liveness_problem(graph);
  problem.link = device.link;
  const std::vector<NodeId> nodes = memory::running_nodes(graph);
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const NodeId id = nodes[k];
    memory::Item& item = problem.items[k];
    const bool is_pointwise = fusion_kind(graph, id) == Fusion::Elementwise;
    for (const std::uint32_t result : item.makes) {
      for (const std::uint32_t operand : item.reads) {
        if (is_pointwise && problem.values[operand].bytes == problem.values[result].bytes) {
          item.may_share.emplace_back(result, operand);
        }
      }
    }
    // Ops with an expression are deterministic; random numbers and the like lack one.
    item.may_repeat = !lowered(graph, id).empty();
    const Footprint footprint = footprint_of(graph, id);
    const double bytes = usual(footprint.bytes_read) + usual(footprint.bytes_written);
    item.alternatives[0].seconds = device.seconds(usual(footprint.flops), bytes);
  }
  return problem;
}

PlanSource plan_source(const std::string& model, const documents::RunReading& reading,
                       const memory::DeviceSpec& device, std::int64_t batch) {
  const models::ModelSource named(model);
  const models::LoadedDocument loaded = named.document();
  if (loaded.document) {
    if (std::optional<documents::RecordedRun> run =
            loaded.document->recorded_run(reading, device)) {
      if (batch == 0) return {*std::move(run), false};
      throw Error("a recorded run has the batch that it was recorded with", ErrorKind::Usage)
          .at(model)
          .hint("leave --batch out");
    }
  }
  Graph graph = loaded.document ? loaded.document->graph() : named.graph();
  return {{problem_of(models::rebatched(std::move(graph), batch), device), "the forward pass", {}},
          false};
}

}  // namespace tenon::planning
