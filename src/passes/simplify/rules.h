#pragma once

#include "passes/rewrite/rewriter.h"

// The rules of `simplify`, by family. Every one gives the same bits as what it replaces unless the
// line says otherwise.
namespace tenon::simplification {

std::vector<rewrite::Rule> arithmetic_rules();
std::vector<rewrite::Rule> selection_rules();  ///< clip, relu, where, casts, dropout
std::vector<rewrite::Rule> view_rules();       ///< transpose, reshape, squeeze, expand, reductions
std::vector<rewrite::Rule> part_rules();       ///< slice, concat, gather, scatter
std::vector<rewrite::Rule> window_rules();     ///< pad, into convolution and pooling
std::vector<rewrite::Rule> transpose_rules();  ///< transposes moved to where they cancel

/// Nodes that compute what an earlier one does give way to it. Gives how many went.
std::size_t merge_common_subexpressions(Graph& graph);

/// Every rule of the families above.
const rewrite::RuleSet& rules();

}  // namespace tenon::simplification
