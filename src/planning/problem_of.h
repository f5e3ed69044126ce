#pragma once

#include "documents/recorded_run.h"
#include "ir/graph.h"

namespace tenon::planning {

/// Builds the problem of a graph's forward pass: node results are values, nodes are items, costs
/// follow from footprints; symbols take their size hints. Pointwise nodes may overwrite an operand
/// of the same size.
memory::Problem problem_of(const Graph& graph, const memory::DeviceSpec& device);

/// Problem of a command-line argument.
struct PlanSource : documents::RecordedRun {
  /// a problem of micro-batches has all of them
  bool is_split_whole = false;
};
/// `reading` applies to recorded training steps. `batch` is the batch of a graph, 0: unchanged.
/// Throws Error (Usage) for a batch of a recorded run.
PlanSource plan_source(const std::string& model, const documents::RunReading& reading,
                       const memory::DeviceSpec& device, std::int64_t batch = 0);

}  // namespace tenon::planning
