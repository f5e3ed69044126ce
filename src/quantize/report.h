#pragma once

#include "quantize/quantizer.h"

#include <string>

namespace tenon::quantize {

/// Returns a self-contained HTML page: the error of each product, and the histogram of each value
/// with its chosen range.
std::string quantization_report(const std::string& model, const QuantizeResult& result);

}  // namespace tenon::quantize
