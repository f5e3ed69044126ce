#pragma once

#include "ir/graph.h"

#include <string>
#include <unordered_map>

namespace tenon::tensorscope {

/// What TensorFlow and its layout optimiser would call nodes that passes of Tenon's made: those of
/// a gradient ("gradients/NODE_grad", see GradientOptions) by the operator that there is in it,
/// transposes between NHWC and NCHW by whom they serve. Other nodes have the names that they have.
std::unordered_map<NodeId, std::string> step_names(const Graph& graph);

}  // namespace tenon::tensorscope
