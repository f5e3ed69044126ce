#pragma once

#include "base/error.h"
#include "codegen/cuda/select.h"
#include "codegen/step_problem.h"
#include "ir/graph.h"
#include "ir/state_ports.h"
#include "program/program.h"
#include "target/target.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen {

/// The candidate that computes a nest for a range of a symbol.
struct Version {
  std::size_t candidate = 0;
  /// Empty: unconditional.
  std::string symbol = "";
  std::int64_t lo = 0, hi = 0;
};
struct Selection {
  /// The ranges cover all values of the symbol.
  std::vector<Version> versions;
  std::string why;
};

/// The choice between candidates for one nest of a graph.
struct Decision {
  struct Candidate {
    std::string name;
    Verdict verdict;
  };
  /// Not set for nodes of bodies and former members of groups.
  NodeId node;
  /// Name of the node's first result.
  std::string name;
  /// Key of the work: equal work has equal text.
  std::string work;
  /// Symbols that determine its extents.
  SymbolRanges symbols;
  /// 0 if they depend on symbols.
  double flops = 0;
  std::vector<Candidate> candidates;
  /// Costs are cycles; otherwise they only define a ranking.
  bool has_estimates = true;
  Selection selection;
  /// in the program
  std::size_t first_step = 0, step_count = 0;
};

struct CompileOptions {
  /// The CPU target; always set.
  std::shared_ptr<const Target> target;
  /// If set, the GPU to compile for instead.
  std::optional<cuda::CudaTarget> device = {};
  /// Winograd convolutions: faster, with larger rounding errors.
  bool allow_winograd = true;
  /// Shape specialization: frequent values of symbols, for which separate kernels are generated.
  std::vector<DimBindings> specialised_shapes = {};
  /// Called for each nest. Without a result the cheapest candidate by estimate is used.
  std::function<std::optional<Selection>(const Decision&)> choose = {};
  /// Called if the nests of a candidate, or of a node as optimised for its target, are unsound,
  /// with the alternative that takes their place. Without it the error is thrown.
  std::function<void(const InternalError& error, std::string_view alternative)> on_fallback = {};
  /// Receives all decisions.
  std::vector<Decision>* decisions = nullptr;
  /// Receives the memory-planning problem of the program; no value for programs of several parts or
  /// with symbolic extents.
  std::optional<StepProblem>* step_problem = nullptr;
  /// States to check by `overwritten_states`.
  std::vector<StatePorts> states = {};
  /// Receives its result.
  std::vector<StatePorts>* overwritten = nullptr;
  /// Thread count assumed by estimates.
  int threads = 1;
};

/// Identifies the code generator as "tenon 0123456789abcdef", a hash of its sources.
std::string source_name();

/// Returns the target string of a program with these options: "x86-64-v3", "cuda:sm_90a".
std::string target_name(const CompileOptions& options);

/// Compiles a graph for the CPU or a GPU to a program: a single list of steps, with kernels where
/// possible, host operators and control flow.
Program compile(const Graph& graph, const CompileOptions& options);

/// Returns the candidates for every node that kernels compute, except in bodies. Compiles no code.
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
