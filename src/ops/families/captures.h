#pragma once

#include "ir/graph.h"

namespace tenon::inline ops {

/// Returns the number of trailing operands of a control-flow node that every iteration of every
/// body receives unchanged as its last inputs; 0 for other ops.
std::size_t captured_count(const Node& node);

}  // namespace tenon::inline ops
