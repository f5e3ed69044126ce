#pragma once

#include "frontends/onnx/import_node.h"

namespace tenon::onnx {

/// A tensor quantized to bytes with scale and zero point from its own range.
struct DynamicBytes {
  Var values, scale, zero_point;
};
DynamicBytes dynamically_quantized(NodeImport& node, Var x);

}  // namespace tenon::onnx
