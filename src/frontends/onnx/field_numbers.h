#pragma once

namespace tenon::frontends::onnx {

/// Field numbers of the ONNX schema, for code that reads or writes its wire format directly.
inline constexpr int kModelGraph = 7, kGraphInitializer = 5;
inline constexpr int kTensorFloatData = 4, kTensorRawData = 9, kTensorDoubleData = 10;

}  // namespace tenon::frontends::onnx
