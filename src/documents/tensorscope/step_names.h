#pragma once

#include "ir/graph.h"

#include <string>
#include <unordered_map>

namespace tenon::documents::tensorscope {

/// Names that TensorFlow and its layout optimiser would give to nodes from Tenon's passes: nodes of
/// a gradient ("gradients/NODE_grad", see GradientOptions) by their operator, transposes between
/// NHWC and NCHW by their readers. Other nodes keep their names.
std::unordered_map<NodeId, std::string> step_names(const Graph& graph);

}  // namespace tenon::documents::tensorscope
