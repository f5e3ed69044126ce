#pragma once

#include <string>
#include <vector>

namespace onnx_schema {
class ModelProto;
}

namespace tenon::frontends::onnx {

/// Sorts the nodes of every graph, body and function topologically (Kahn's algorithm). Of the nodes
/// that are ready, the first in the file comes first, so that sorted nodes stay in place. Returns a
/// warning for each list of nodes that was not sorted. Throws Error for a cycle.
std::vector<std::string> sort_nodes(onnx_schema::ModelProto& model);

}  // namespace tenon::frontends::onnx
