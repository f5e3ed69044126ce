#pragma once

#include "documents/native_node.h"
#include "documents/tensorscope/table.h"
#include "ir/graph.h"

namespace tenon::documents::tensorscope {

/// Returns the table of a step that runs the graph on the device in the graph's metadata
/// ("tensorscope.device" = "GPU:0", which is also the default, and "tensorscope.device.NODE" for
/// single nodes). Nodes of `own`, and those without an operator in TensorFlow, have notes with
/// their records. Throws one Error of kind Unsupported that lists every value without a fixed
/// shape.
TensorScopeTable export_table(const Graph& graph, const NativeNodes& own = {});

}  // namespace tenon::documents::tensorscope
