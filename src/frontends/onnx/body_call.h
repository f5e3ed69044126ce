#pragma once

#include "frontends/onnx/import_node.h"

#include <string_view>
#include <vector>

namespace tenon::frontends::onnx {

/// Appends a node with body graphs whose first `result_count` results are the ONNX node's outputs;
/// a body may return more results than the node names.
void call_with_bodies(NodeImport& node, std::string_view op, const std::vector<Var>& operands,
                      const std::vector<Attr>& attrs, std::vector<Graph> bodies,
                      std::size_t result_count);

}  // namespace tenon::frontends::onnx
