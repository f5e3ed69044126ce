#pragma once

#include "frontends/own_node.h"
#include "frontends/tensorscope/table.h"
#include "ir/graph.h"

namespace tenon::tensorscope {

/// The table of a step that runs the graph, on the device that the graph's metadata names
/// ("tensorscope.device" = "GPU:0", which is also the default, and "tensorscope.device.NODE" for
/// single nodes). The nodes of `own`, and those that TensorFlow has no operator for, have notes
/// that say what they are. Throws one Error of kind Unsupported that lists every value without a
/// fixed shape.
Table export_table(const Graph& graph, const OwnNodes& own = {});

}  // namespace tenon::tensorscope
