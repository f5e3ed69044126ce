#pragma once

#include "base/page.h"

#include <string>

namespace tenon::frontends::onnx {

/// Describes an ONNX model from its file, including operators unknown to Tenon: opsets, producer,
/// metadata, inputs and outputs, nodes by operator. Throws Error for a file that is not an ONNX
/// model.
Page describe_file(const std::string& path);

}  // namespace tenon::frontends::onnx
