#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "ops/evaluation.h"
#include "ops/expr.h"

namespace tenon::reference {

struct Options {
  int thread_count = 0;  ///< 0: as many as the machine has; results do not depend on it
  /// Called after each node with the number of nodes done; for progress.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
  /// Called with every result as it is made; for comparing values inside a graph.
  std::function<void(ValueId, const Datum&)> on_value;
};

/// Runs a graph on the given inputs, one for each graph input. Throws Error if an input does not
/// fit its declared type or range, or if the data breaks an op's rules.
std::vector<Datum> evaluate(const Graph& graph, std::vector<Datum> inputs, const Options& options = {});

/// Runs one op on tensors; results by position (as many as `wanted` asks for).
std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<bool>& wanted, const std::vector<Graph>& bodies = {},
                               const Options& options = {});

/// The tensors that expressions describe, computed in blocks; an undefined expression gives an empty
/// tensor. What the expressions share is computed once.
std::vector<Tensor> evaluate(const std::vector<Expr>& exprs, const std::vector<const Tensor*>& operands,
                             int thread_count = 1);
Tensor evaluate(const Expr& expr, const std::vector<const Tensor*>& operands, int thread_count = 1);

/// The same, one element at a time straight from the expression's definition. Very slow; what the
/// block evaluator is held to.
Tensor evaluate_plainly(const Expr& expr, const std::vector<const Tensor*>& operands);

}  // namespace tenon::reference
