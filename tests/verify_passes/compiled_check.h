#pragma once

#include "driver/verify/pass_check.h"
#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// What became of a graph that was optimised, compiled, run and compared.
struct CompiledCheck {
  /// empty, or what went wrong with the smallest graph of it
  std::string failure;
  /// why it was not compiled: one for each node
  std::vector<std::string> refused;
};

/// Runs the standard passes over the graph, compiles it for the processor and compares what it
/// gives on 1, 2, 3 and 7 threads with the reference's results of the graph as it was: within the
/// leeway of its element types, and bit for bit the same on any number of threads. With Winograd's
/// convolutions the leeway is at least the error that these promise, and inputs are finite: what is
/// infinite spreads among the pixels of a tile. `target` may be a device: "cuda:sm_90a"; then the
/// same bits are asked of several runs. The checker is the graph's own, with what the reference
/// gave.
CompiledCheck check_compiled(const Graph& graph, const PassChecker& checker, bool allow_winograd,
                             const std::string& target);

}  // namespace tenon::testing
