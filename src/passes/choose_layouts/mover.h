#pragma once

#include "passes/choose_layouts/assignment.h"

namespace tenon::passes::layouts {

/// Converts the chosen nodes and inserts a transpose wherever the two layouts meet, one per value
/// and direction. Other values keep their types; inputs and outputs also keep their names.
void move(Graph& graph, const LayoutProblem& problem, const LayoutAssignment& choice);

}  // namespace tenon::passes::layouts
