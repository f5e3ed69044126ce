#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon {

/// Everything that is wrong with a graph, one message each; empty if it is sound: ids in range,
/// values made before they are read, names unique, operands and attributes as the op asks, types as
/// inferred, readers consistent, symbols with one range, bodies sound.
std::vector<std::string> problems_of(const Graph& graph);

/// Throws an Error listing the problems, if there are any.
void verify(const Graph& graph);

}  // namespace tenon
