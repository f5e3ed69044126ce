#pragma once

#include "ir/graph.h"

namespace tenon {

/// How many of the last operands of a node of control flow every run of every body takes as they
/// are, as its last inputs; 0 for other ops.
std::size_t captured_count(const Node& node);

}  // namespace tenon
