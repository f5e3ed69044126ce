#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::inline ir {

/// Returns every defect of a graph, one message each; empty if it is sound: ids in range,
/// definitions before uses, unique names, operands and attributes that fit the op, types as
/// inferred, consistent readers, one range per symbol, sound bodies.
std::vector<std::string> problems_of(const Graph& graph);

/// Throws an Error that lists the problems, if there are any.
void verify(const Graph& graph);

}  // namespace tenon::inline ir
