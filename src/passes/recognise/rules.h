#pragma once

#include "passes/rewrite/rewriter.h"

// The rules of `recognise`, by family. Sums and products may be taken in another order than as
// written: results agree within rounding, not bit for bit.
namespace tenon::recognition {

/// GELU, swish, hard swish, mish, sigmoid
std::vector<rewrite::Rule> activation_rules();
std::vector<rewrite::Rule> softmax_rules();
/// layer, RMS, group, instance and batch norm
std::vector<rewrite::Rule> normalization_rules();
std::vector<rewrite::Rule> attention_rules();

/// What several patterns have in common, by name.
std::vector<std::string> definitions();
/// Every rule of the families above.
const rewrite::RuleSet& rules();

}  // namespace tenon::recognition
