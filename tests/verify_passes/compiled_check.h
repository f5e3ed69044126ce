#pragma once

#include "ir/graph.h"
#include "target/target_spec.h"
#include "testing/verify/pass_check.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// Result of a graph that was optimised, compiled, run and compared.
struct CompiledCheck {
  /// empty, or the failure of the smallest reproduction
  std::string failure;
  /// reasons against compilation, one per node
  std::vector<std::string> refused;
};

/// Runs the standard passes over the graph, compiles it for the processor and compares its results
/// on 1, 2, 3 and 7 threads with the reference's results of the original graph: within the
/// tolerance of its element types, and bit-identical on any number of threads. With Winograd's
/// algorithm the tolerance is at least its documented error, and inputs are finite, because
/// infinities spread over the pixels of a tile. `target` may be a device, "cuda:sm_90a"; then
/// several runs must be bit-identical. `checker` belongs to the graph and holds the reference's
/// results.
CompiledCheck check_compiled(const Graph& graph, const testing::PassChecker& checker,
                             bool allow_winograd, const TargetSpec& target);

}  // namespace tenon::testing
