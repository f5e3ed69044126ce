#pragma once

#include "passes/choose_layouts/choice.h"

namespace tenon::layouts {

/// Moves the nodes chosen and places a transpose where the two forms meet: one for each value and
/// direction. Values that stay keep their types, inputs and outputs their names as well.
void move(Graph& graph, const Problem& problem, const Choice& choice);

}  // namespace tenon::layouts
