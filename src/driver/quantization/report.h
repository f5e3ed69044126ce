#pragma once

#include "driver/quantization/quantizer.h"

#include <string>

namespace tenon {

/// A page in one file that needs nothing else: the error of each product, and what was seen of each
/// value with the range that was chosen.
std::string quantization_report(const std::string& model, const QuantizeResult& result);

}  // namespace tenon
