#pragma once

#include "passes/rewrite/rewriter.h"

// The rules of `recognise`, by family. Sums and products may be reordered: results agree within
// rounding, not bit for bit.
namespace tenon::passes::recognition {

/// GELU, swish, hard swish, mish, sigmoid
std::vector<rewrite::Rule> activation_rules();
std::vector<rewrite::Rule> softmax_rules();
/// layer, RMS, group, instance and batch norm
std::vector<rewrite::Rule> normalization_rules();
std::vector<rewrite::Rule> attention_rules();

/// Returns named definitions shared by several patterns.
std::vector<std::string> definitions();
/// Returns every rule of the families above.
const rewrite::RuleSet& rules();

}  // namespace tenon::passes::recognition
