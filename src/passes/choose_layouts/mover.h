#pragma once

#include "passes/choose_layouts/choice.h"

namespace tenon::layouts {

/// Converts the chosen nodes and inserts a transpose wherever the two layouts meet, one per value
/// and direction. Other values keep their types; inputs and outputs also keep their names.
void move(Graph& graph, const Problem& problem, const Choice& choice);

}  // namespace tenon::layouts
