#pragma once

#include "ir/graph.h"
#include "ops/evaluation.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// How the compiled graph differs from what the reference gave; empty if it does not, or if the
/// graph is not one that kernels compute.
std::string compare_compiled(const Graph& graph, const std::vector<Datum>& inputs,
                             const std::vector<Datum>& expected);

/// How many graphs were compared so.
std::size_t compiled_count();

}  // namespace tenon::testing
