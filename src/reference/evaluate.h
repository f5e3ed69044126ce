#pragma once

#include "ir/graph.h"
#include "ops/evaluation.h"
#include "ops/expr.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::reference {

/// Seeded constants, made once for many runs.
class ConstantCache {
 public:
  Tensor get(const Constant& constant);

 private:
  std::map<std::string, Tensor> made_;
};

struct Options {
  /// 0: as many as the machine has; results do not depend on it
  int thread_count = 0;
  /// Called after each node with the number of nodes done; for progress.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
  /// Called with every result as it is made, but for those in bodies; for comparing values inside a
  /// graph.
  std::function<void(ValueId, const Datum&)> on_value;
  /// May change every result as it is made, those in bodies too; for asking how much rounding
  /// matters. Constants, and what else reads nothing, come with `is_given`.
  std::function<void(Datum&, bool is_given)> disturb;
  /// Narrow floats go from node to node as f32, as they do inside a fused kernel: a result that no
  /// narrow type can hold is not yet infinite there. Inputs may be f32 where a narrow type is
  /// declared; outputs are f32.
  bool keeps_floats_wide = false;
  /// A node computes in f64 where it would in f32, and rounds once, at its end. For asking how much
  /// the roundings inside nodes matter: 1 + erf(x) has few digits left far below zero.
  bool computes_wide = false;
  /// How many nodes may run, those in bodies too; an Error ends the run when none are left. For
  /// inputs that may ask for a loop without end. Null: any number.
  std::shared_ptr<std::int64_t> node_runs_left;
  /// The most bytes that a result may have; an Error ends the run on a larger one. 0: any number.
  std::int64_t max_result_bytes = 0;
  /// What an index outside its tensor reads and what an integer divided by zero gives, instead of
  /// an Error. For asking whether an output depends on an element that fails: then two numbers give
  /// two results.
  std::optional<double> stand_in;
  /// Called before each run of a body, such as a trip of a loop; what it throws ends the run. For
  /// limits, and for stopping a loop that has no end in sight.
  std::function<void()> before_body;
  /// Where seeded constants are kept from run to run; null: made anew each time.
  std::shared_ptr<ConstantCache> constants;
  /// The ranks that run the graph, each of which calls; null: this is the only one.
  Communicator* communicator = nullptr;
};

/// Runs a graph on the given inputs, one for each graph input. Throws Error if an input does not
/// fit its declared type or range, or if the data breaks an op's rules.
std::vector<Datum> evaluate(const Graph& graph, std::vector<Datum> inputs,
                            const Options& options = {});

/// Runs one op on tensors; results by position (as many as `wanted` asks for).
std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<bool>& wanted,
                               const std::vector<Graph>& bodies = {}, const Options& options = {});

/// The same for operands that have layouts, and an op without bodies.
std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<Layout>& layouts, const std::vector<bool>& wanted,
                               const Options& options);

/// Runs one node of a graph on its operands' values, which have the layouts that the graph says;
/// `symbols` are put in for those in its attributes.
std::vector<Datum> evaluate_node(const Graph& graph, NodeId node,
                                 const std::vector<std::optional<Datum>>& operands,
                                 const DimBindings& symbols = {}, const Options& options = {});

/// The tensors that expressions describe, computed in blocks; an undefined expression gives an
/// empty tensor. What the expressions share is computed once.
std::vector<Tensor> evaluate(const std::vector<Expr>& exprs,
                             const std::vector<const Tensor*>& operands, int thread_count = 1);
Tensor evaluate(const Expr& expr, const std::vector<const Tensor*>& operands, int thread_count = 1);

/// The same, one element at a time straight from the expression's definition. Very slow; what the
/// block evaluator is held to.
Tensor evaluate_plainly(const Expr& expr, const std::vector<const Tensor*>& operands);

}  // namespace tenon::reference
