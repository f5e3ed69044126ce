#pragma once

#include "documents/chainer/tables.h"
#include "ir/type.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::chainer {

struct SolveOptions {
  /// Variable whose bytes are distrusted: its shape must follow from the others.
  std::size_t disbelieved = kNone;
  /// Stops after this many solutions; two suffice to decide uniqueness.
  std::size_t solution_limit = 2;
  /// Allows 64-bit class indices if 32 bits do not fit.
  bool allows_wide_integers = true;
  /// Stops after this many evaluated relations and listed shapes.
  std::size_t work_limit = 1'000'000;
};

/// Types of all variables, inferred from their bytes and the functions' shape constraints.
struct ShapeSolution {
  /// By variable; nullopt if no known function constrains it.
  std::vector<std::optional<TensorType>> types;
  bool is_solved = false;
  /// Other shapes of the same sizes would satisfy the constraints too.
  bool is_ambiguous = false;
  /// The search stopped at a limit.
  bool is_cut_off = false;
  /// Number of guessed shapes.
  std::size_t attempts = 0;
  /// Evaluated relations and listed shapes.
  std::size_t work = 0;

  /// Location of the failure in the most promising attempt, if unsolved.
  std::size_t contradicting_variable = kNone, contradicting_function = kNone;
  std::string contradiction;

  /// Functions without a rule, by position in Tables::forward.
  std::vector<std::size_t> unknown_functions;
};

/// Shape inference as constraint propagation with backtracking. Every function is a relation
/// between the shapes around it; new facts propagate until a fixed point. Then the variable with
/// the fewest candidates at the earliest function is guessed, most likely shape first, and undone
/// on a contradiction. Throws Error for invalid attributes.
ShapeSolution solve_shapes(const Tables& tables, std::string_view source,
                           const SolveOptions& options = {});

/// Attributes by which native Tenon records state the types of their inputs and outputs.
constexpr std::string_view kInputTypes = "_input_types", kOutputTypes = "_output_types";
/// Operator name in native Tenon records.
constexpr std::string_view kOwnOp = "_tenon";
/// Position of each output among the outputs of the graph, or null, if it cannot be inferred.
constexpr std::string_view kGraphOutputs = "_graph_outputs";

}  // namespace tenon::documents::chainer
