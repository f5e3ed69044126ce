#pragma once

#include "frontends/onnx/import_node.h"

#include <vector>

namespace tenon::onnx {

/// The attributes that ONNX's windowed ops share (strides, dilations, pads or auto_pad), as those
/// of Tenon's.
std::vector<Attr> window_attrs(const NodeImport& node);
/// The same and those of convolutions.
/// `weights` is the input that holds them; `kernel_shape` must be theirs where it is stated.
std::vector<Attr> convolution_attrs(const NodeImport& node, std::size_t weights = 1);

}  // namespace tenon::onnx
