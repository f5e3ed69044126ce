#pragma once

#include "base/error.h"
#include "codegen/step_problem.h"
#include "ir/graph.h"
#include "nests/nest_pass.h"
#include "program/program.h"
#include "target/target.h"
#include "tasks/task_list.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

/// The candidate that computes a nest for a range of a symbol.
struct Version {
  /// Index in `Decision::candidates`.
  std::size_t candidate = 0;
  /// Empty: unconditional.
  std::string symbol = "";
  /// Smallest and largest value, inclusive.
  std::int64_t lo = 0, hi = 0;
};
/// The chosen candidates for a nest.
struct Selection {
  /// The ranges are disjoint and cover all values of the symbol.
  std::vector<Version> versions;
  /// Reason, for reports.
  std::string why;
};

/// The choice between candidates for one nest of a graph.
struct Decision {
  /// One implementation: accepted with an estimated cost, or refused with a reason
  /// (`target/candidate.h`).
  struct Candidate {
    std::string name;
    Verdict verdict;
  };
  /// Not set for nodes of bodies and for nodes that the compiler created from a fused group.
  NodeId node;
  /// Name of the node's first result.
  std::string name;
  /// Key of a tuning cache: equal nests on equal targets have equal text.
  std::string work;
  /// Symbols that determine the nest's extents.
  SymbolRanges symbols;
  /// Arithmetic operations of the nest; 0 if they depend on symbols.
  double flops = 0;
  std::vector<Candidate> candidates;
  /// Costs are cycles of one core; otherwise they only define a ranking.
  bool has_estimates = true;
  Selection selection;
  /// The program's steps that compute the nest's node; not yet known when `choose` is called.
  std::size_t first_step = 0, step_count = 0;
};

/// Settings of a compilation that need no target; requests by name (`driver/compile.h`) have them
/// too.
struct CompileSettings {
  /// Winograd convolutions: faster, with larger rounding errors.
  bool allow_winograd = true;
  /// Thread count that kernels are chosen for and that `Compiled::step_problem` assumes; no effect
  /// on a GPU. 0: in a request by name all threads of the process, otherwise one.
  int threads = 0;
  /// Fills `Compiled::decisions`, and the record of passes (`CompileRecord`).
  bool keeps_record = false;
  /// Fills `Compiled::step_problem`.
  bool describes_step = false;
  /// Fills `Compiled::tasks`.
  bool keeps_tasks = false;
};

struct CompileOptions : CompileSettings {
  std::shared_ptr<const Target> target;
  /// Shape specialization: frequent values of symbols, for which separate kernels are generated.
  std::vector<DimBindings> specialised_shapes = {};
  nests::NestPassOptions nest_passes = {};
  /// Called for each distinct nest, on the compiling thread. Without a result the cheapest
  /// candidate by estimate is used; on the CPU it also replaces a refused candidate.
  std::function<std::optional<Selection>(const Decision&)> choose = {};
  /// Called if a candidate or a target-specific rewrite of a node produces an invalid nest (a bug
  /// of the compiler), with the alternative that replaces it. If empty, the error is thrown.
  std::function<void(const InternalError& error, std::string_view alternative)> on_fallback = {};
};

/// A compiled graph.
struct Compiled {
  Program program;
  /// Empty unless recorded.
  std::vector<Decision> decisions = {};
  /// The memory-planning problem of the program. No value unless requested, and for programs with
  /// host steps, control flow or symbolic extents.
  std::optional<StepProblem> step_problem = {};
  /// No value unless requested.
  std::optional<TaskList> tasks = {};
};

/// Identifies the code generator as "tenon 0123456789abcdef", a hash of its sources.
std::string source_name();

/// Compiles a graph for the target to a program: a single list of steps, with kernels where
/// possible, host operators and control flow. Runs no passes: optimise the graph before. Throws
/// Error of kind Unsupported if a kernel cannot be generated, OutOfMemory, or Device without NVRTC;
/// InternalError for a bug of the compiler.
Compiled compile(const Graph& graph, const CompileOptions& options);

/// Returns the decisions for every node that kernels compute, except in bodies. Generates no code.
std::vector<Decision> decide(const Graph& graph, const CompileOptions& options);

/// Intermediate forms between a graph and a program.
enum class CompileStage : std::uint8_t {
  /// Scheduled loop nests of the kernels.
  Nests,
  /// Tasks, their buffers and alternatives.
  Tasks,
  /// Offsets and lifetimes of arena buffers.
  Plan,
  /// The program without code and constants.
  Program,
  /// Nests, the generated code and its assembly.
  Code,
};
/// Prints one intermediate form.
std::string print_code(const Graph& graph, const CompileOptions& options,
                       CompileStage stage = CompileStage::Code);

}  // namespace tenon::codegen
