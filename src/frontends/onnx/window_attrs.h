#pragma once

#include "frontends/onnx/import_node.h"

#include <vector>

namespace tenon::frontends::onnx {

/// Converts the attributes that ONNX's windowed ops share (strides, dilations, pads or auto_pad) to
/// Tenon's.
std::vector<Attr> window_attrs(const NodeImport& node);
/// Converts these and the attributes of convolutions. `weights` is the position of that input; a
/// stated `kernel_shape` must match it.
std::vector<Attr> convolution_attrs(const NodeImport& node, std::size_t weights = 1);

}  // namespace tenon::frontends::onnx
