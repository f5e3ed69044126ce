#pragma once

#include "passes/rewrite/rewriter.h"

// The rules of `simplify`, by family. Every rule is bit-exact unless its line says otherwise.
namespace tenon::passes::simplification {

std::vector<rewrite::Rule> arithmetic_rules();
/// clip, relu, where, casts, dropout
std::vector<rewrite::Rule> selection_rules();
/// transpose, reshape, squeeze, expand, reductions
std::vector<rewrite::Rule> view_rules();
/// slice, concat, gather, scatter
std::vector<rewrite::Rule> slice_rules();
/// pad, into convolution and pooling
std::vector<rewrite::Rule> window_rules();
/// transposes moved until they cancel
std::vector<rewrite::Rule> transpose_rules();
/// as matrix products
std::vector<rewrite::Rule> einsum_rules();

/// Returns every rule of the families above.
const rewrite::RuleSet& rules();

}  // namespace tenon::passes::simplification
