#pragma once

#include "frontends/onnx/import_node.h"

#include <string>

namespace tenon::onnx {

/// A node of an operator that a plug-in has (`ops/plugins.h`); its attributes become a JSON object.
void import_custom(NodeImport& import, const onnx_schema::NodeProto& node, const std::string& name);

}  // namespace tenon::onnx
