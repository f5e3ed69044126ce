#pragma once

namespace tenon::onnx {

/// The newest ai.onnx opset that Tenon supports.
inline constexpr int kNewestOpset = 28;

}  // namespace tenon::onnx
