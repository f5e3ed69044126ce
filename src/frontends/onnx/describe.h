#pragma once

#include "base/page.h"

#include <string>

namespace tenon::onnx {

/// An ONNX model as its file has it, whether Tenon knows its operators or not: opsets, producer,
/// metadata, inputs and outputs, nodes by operator. Throws Error for a file that is no ONNX model.
Page describe_file(const std::string& path);

}  // namespace tenon::onnx
