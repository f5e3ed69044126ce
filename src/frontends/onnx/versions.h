#pragma once

namespace tenon::onnx {

/// The newest ai.onnx opset whose operators are known here.
inline constexpr int kNewestOpset = 28;

}  // namespace tenon::onnx
