#pragma once

#include "frontends/chainer/tables.h"
#include "ir/type.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::chainer {

struct SolveOptions {
  /// A variable whose bytes are not believed: its shape has to follow from the others.
  std::size_t disbelieved = kNone;
  /// Stop after this many solutions; two tell whether there is but one.
  std::size_t solution_limit = 2;
  /// Whether class numbers may have 64 bits, if 32 do not fit.
  bool allows_wide_integers = true;
  /// Stop after so much work: functions asked and shapes listed.
  std::size_t work_limit = 1'000'000;
};

/// The types of all variables, found from their bytes and from what each function says about
/// shapes.
struct ShapeSolution {
  /// By variable; nothing where no function that we know says anything about it.
  std::vector<std::optional<TensorType>> types;
  bool is_solved = false;
  /// Other shapes of the same sizes would do as well.
  bool is_ambiguous = false;
  /// The search was cut off before all was tried.
  bool is_cut_off = false;
  /// shapes that were tried and followed up
  std::size_t attempts = 0;
  /// functions asked and shapes listed
  std::size_t work = 0;

  /// Where the most promising attempt failed, if nothing was found.
  std::size_t contradicting_variable = kNone, contradicting_function = kNone;
  std::string contradiction;

  /// Functions that nobody wrote a rule for, by position in Tables::forward.
  std::vector<std::size_t> unknown_functions;
};

/// Every function is a relation between the shapes around it; what follows from one is handed on
/// until nothing new follows, then the shape with the fewest possibilities at the earliest function
/// is guessed, likeliest first, and taken back when it contradicts something. Throws Error for
/// attributes that a function cannot have.
ShapeSolution solve_shapes(const Tables& tables, std::string_view source,
                           const SolveOptions& options = {});

/// The attributes by which records of Tenon's own state the types of what they read and make.
constexpr std::string_view kInputTypes = "_input_types", kOutputTypes = "_output_types";
/// The name of Tenon's operator, in records of its own.
constexpr std::string_view kOwnOp = "_tenon";
/// The place of each output among the outputs of the graph, or null, where that does not follow.
constexpr std::string_view kGraphOutputs = "_graph_outputs";

}  // namespace tenon::chainer
