#pragma once

#include "frontends/onnx/import_node.h"

#include <string>

namespace tenon::frontends::onnx {

/// Imports a node of a plug-in's operator (`ops/definition/plugins.h`); its attributes become a
/// JSON object.
void import_custom(NodeImport& import, const onnx_schema::NodeProto& node, const std::string& name);

}  // namespace tenon::frontends::onnx
