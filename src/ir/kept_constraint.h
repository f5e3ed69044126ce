#pragma once

#include "ir/constraint.h"

namespace tenon {

/// Has a graph keep a constraint that no node states, as one that a model's format makes.
void add_constraint(Graph& graph, const Constraint& constraint);

}  // namespace tenon
