#pragma once

#include "expr/expr.h"
#include "ir/graph.h"
#include "ops/definition/evaluation.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::reference {

/// Cache of seeded constants across runs.
class ConstantCache {
 public:
  Tensor get(const Constant& constant);

 private:
  std::map<std::string, Tensor> made_;
};

struct EvaluateOptions {
  /// 0: all cores. Results do not depend on it.
  int thread_count = 0;
  /// Progress callback after each node with the number of finished nodes.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
  /// Observer of every result outside of bodies, for comparing intermediate values.
  std::function<void(ValueId, const Datum&)> on_value;
  /// May perturb every result, including those in bodies, to test sensitivity to rounding.
  /// `is_given` marks constants and other results without operands.
  std::function<void(Datum&, bool is_given)> disturb;
  /// Keeps narrow floats as f32 between nodes, as inside a fused kernel: a result beyond the narrow
  /// range is not yet infinite there. Inputs may be f32 where a narrow type is declared; outputs
  /// are f32.
  bool keeps_floats_wide = false;
  /// Evaluates f32 nodes in f64 and rounds once at the end, to measure the effect of rounding
  /// inside nodes: 1 + erf(x) has few significant digits far below zero.
  bool computes_wide = false;
  /// Budget of node executions, including bodies, of which an empty one counts as a node; throws
  /// Error when exhausted. For inputs that may request endless loops. Null: unlimited.
  std::shared_ptr<std::int64_t> node_runs_left;
  /// Limit on the size of a result; throws Error beyond it. 0: unlimited.
  std::int64_t max_result_bytes = 0;
  /// Limit on the arithmetic operations of one node; throws Error beyond it, before the node runs.
  /// 0: as many as can be counted.
  std::int64_t max_node_operations = 0;
  /// Value of an out-of-bounds read and of an integer division by zero, instead of an Error. Two
  /// runs with different values show whether an output depends on a failing element.
  std::optional<double> default_value;
  /// Called before each execution of a body, e.g. a loop iteration; an exception ends the run. For
  /// limits and for interrupting endless loops.
  std::function<void()> before_body;
  /// Cache of seeded constants across runs; null: no cache.
  std::shared_ptr<ConstantCache> constants;
  /// Communicator of the ranks that run the graph, each with its own call; null: single rank.
  Communicator* communicator = nullptr;
};

/// Evaluates a graph on the given inputs. Throws Error if an input does not match its declared type
/// or range, or if the data violates an operator's conditions.
std::vector<Datum> evaluate(const Graph& graph, std::vector<Datum> inputs,
                            const EvaluateOptions& options = {});

/// Evaluates one operator on tensors; returns the `wanted` results by position.
std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<bool>& wanted,
                               const std::vector<Graph>& bodies = {},
                               const EvaluateOptions& options = {});

/// Evaluates an operator without bodies on operands with layouts.
std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<Layout>& layouts, const std::vector<bool>& wanted,
                               const EvaluateOptions& options);

/// Evaluates one node of a graph. Operand values have the layouts declared in the graph; `symbols`
/// are substituted in its attributes.
std::vector<Datum> evaluate_node(const Graph& graph, NodeId node,
                                 const std::vector<std::optional<Datum>>& operands,
                                 const DimBindings& symbols = {},
                                 const EvaluateOptions& options = {});

/// Evaluates expressions in blocks; an undefined expression yields an empty tensor. Shared
/// subexpressions are evaluated once.
std::vector<Tensor> evaluate(const std::vector<Expr>& exprs,
                             const std::vector<const Tensor*>& operands, int thread_count = 1);
Tensor evaluate(const Expr& expr, const std::vector<const Tensor*>& operands, int thread_count = 1);

/// Evaluates one element at a time, directly by the definition. Very slow; the oracle for tests of
/// the block evaluator.
Tensor evaluate_plainly(const Expr& expr, const std::vector<const Tensor*>& operands);

}  // namespace tenon::reference
