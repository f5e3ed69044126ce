#pragma once

#include "documents/chainer/training_graph.h"
#include "documents/megengine/tables.h"
#include "ir/graph.h"
#include "memory/device.h"

#include <functional>

namespace tenon {

/// Builds the memory problem of a training step recorded by Chainer: functions and their backwards
/// are items, intermediates and their gradients are values. Gradients of one tensor accumulate in
/// place; those of inputs are not computed. Parameters, their gradients and inputs are fixed. Costs
/// follow from the shapes. With `micro_batches`, it is one of that many equal micro-batches with
/// gradient accumulation. `is_fused`: fuses functions as a compiler does (`chainer_fused.h`) and
/// retains values accordingly.
memory::Problem problem_of(const chainer::Tables& tables, std::string_view source,
                           chainer::Reading reading, const memory::DeviceSpec& device,
                           int micro_batches = 1, bool is_fused = false);
/// Returns the possible numbers of micro-batches; empty if an operator mixes samples.
std::vector<int> micro_batch_counts(const chainer::Tables& tables, std::string_view source);

/// Builds the problem of a run that MegEngine profiled, with its measured device times if present;
/// Elemwise may overwrite an operand.
memory::Problem problem_of(const megengine::MegEngineProfile& profile, std::string_view source);

/// Builds the problem of a graph's forward pass: node results are values, nodes are items, costs
/// follow from footprints; symbols take their size hints. Pointwise nodes may overwrite an operand
/// of the same size.
memory::Problem problem_of(const Graph& graph, const memory::DeviceSpec& device);

/// Problem of a command-line argument; `reading` applies to Chainer's documents.
struct PlanSource {
  memory::Problem problem;
  /// how it was read
  std::string note;
  /// Problems of micro-batches, fewest first, built on demand. Each covers one micro-batch; or all
  /// of them, if they are consecutive in the problem.
  std::vector<std::pair<int, std::function<memory::Problem()>>> split;
  bool is_split_whole = false;
};
/// `batch` is the batch of a graph, 0: unchanged. Throws Error (Usage) for a batch of a document.
PlanSource plan_source(const std::string& model, chainer::Reading reading,
                       const memory::DeviceSpec& device, bool is_fused = false,
                       std::int64_t batch = 0);

}  // namespace tenon
