#pragma once

#include "passes/rewrite/rewriter.h"

#include <vector>

// QDQ lowering rules: products whose operands are dequantized 8-bit values.
namespace tenon::passes::qdq {

/// Rules for moves, pools and quantize-dequantize pairs between products.
std::vector<rewrite::Rule> value_rules();
/// Rules that turn products of dequantized operands into dequantized integer sums.
std::vector<rewrite::Rule> contraction_rules();
/// Rules for one row times narrow weights: a sum that widens each weight as it is read.
std::vector<rewrite::Rule> row_rules();
/// Rules that turn quantizing such a sum into requantization: one scale and one rounding.
std::vector<rewrite::Rule> requantize_rules();

}  // namespace tenon::passes::qdq
