#pragma once

#include "ir/graph.h"
#include "ops/definition/evaluation.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// Compares the compiled graph with the reference's results. Returns the difference; empty for
/// agreement, and for graphs that kernels do not compute.
std::string compare_compiled(const Graph& graph, const std::vector<Datum>& inputs,
                             const std::vector<Datum>& expected);

/// Number of graphs that were compared this way.
std::size_t compiled_count();

}  // namespace tenon::testing
