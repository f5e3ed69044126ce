#pragma once

#include "ir/constraint.h"

namespace tenon::inline ir {

/// Stores a constraint that does not come from a node, such as one that a model format imposes.
void add_constraint(Graph& graph, const Constraint& constraint);

}  // namespace tenon::inline ir
