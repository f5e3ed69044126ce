#pragma once

#include <string_view>

namespace tenon::frontends::onnx {

/// The newest ai.onnx opset that Tenon supports.
inline constexpr int kNewestOpset = 28;

/// Returns the newest opset of a domain that Tenon supports; for a plug-in's domain a large number.
constexpr int newest_opset(std::string_view domain) {
  if (domain.empty()) return kNewestOpset;
  if (domain == "ai.onnx.ml") return 5;
  return domain.starts_with("ai.onnx.") || domain == "com.microsoft" ? 1 : 1'000'000;
}

}  // namespace tenon::frontends::onnx
