#pragma once

#include "frontends/onnx/import_node.h"

#include <optional>

namespace tenon::frontends::onnx {

/// Imports MatMulInteger or ConvInteger (inputs: left, right, left zero point, right zero point)
/// as a product of bytes with corrections of its sums, which the targets' byte kernels compute:
/// sum (a - p)(b - q) = sum ab - p sum (b - q) - q sum a. Returns nullopt unless the left zero
/// point is one number that only the run determines and the weights and theirs are constants;
/// otherwise the passes lower the contraction of centred operands better.
std::optional<Var> integer_matmul(NodeImport& node);
std::optional<Var> integer_conv(NodeImport& node);

}  // namespace tenon::frontends::onnx
