#pragma once

#include "passes/rewrite/rewriter.h"

#include <vector>

// What becomes of products whose operands stand for real numbers in eight bits.
namespace tenon::integers {

/// Moves, pools and pairs of quantize and dequantize that lie between products.
std::vector<rewrite::Rule> value_rules();
/// Products of dequantized operands become dequantized sums of integers.
std::vector<rewrite::Rule> product_rules();
/// One row times narrow weights is a sum in which each weight is widened as it is read.
std::vector<rewrite::Rule> row_rules();
/// Quantizing such a sum is one scale and one rounding.
std::vector<rewrite::Rule> requantize_rules();

}  // namespace tenon::integers
