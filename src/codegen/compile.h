#pragma once

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
#include <vector>

namespace tenon::codegen {

/// Which candidate computes a nest, for which values of a symbol.
struct Version {
  std::size_t candidate = 0;
  /// empty: always
  std::string symbol = "";
  std::int64_t lo = 0, hi = 0;
};
struct Selection {
  /// between them, all values that the symbol can have
  std::vector<Version> versions;
  std::string why;
};

/// How it was decided what computes one nest of a graph.
struct Decision {
  struct Option {
    std::string name;
    Verdict verdict;
  };
  /// none where it is in a body, or was in a group
  NodeId node;
  /// of the node's first result
  std::string name;
  /// the same text for the same work
  std::string work;
  /// that decide its extents
  SymbolRanges symbols;
  /// 0 where symbols decide
  double flops = 0;
  std::vector<Option> candidates;
  /// costs are cycles; else they only say what comes first
  bool has_estimates = true;
  Selection selection;
  /// of the program
  std::size_t first_step = 0, step_count = 0;
};

struct CompileOptions {
  /// the processor: always there
  std::shared_ptr<const Target> target;
  /// in place of the processor
  std::optional<cuda::Target> device = {};
  /// faster convolutions whose rounding errors are larger
  bool allow_winograd = true;
  /// Values of symbols that come often: kernels of their own compute what depends on them.
  std::vector<DimBindings> specialised_shapes = {};
  /// Asked for each nest; where it is not given or gives nothing, the cheapest by estimate is
  /// taken.
  std::function<std::optional<Selection>(const Decision&)> choose = {};
  /// gets them all
  std::vector<Decision>* decisions = nullptr;
  /// Gets what planning the program's memory asks; nothing of a program of several parts or with
  /// symbols.
  std::optional<StepProblem>* step_problem = nullptr;
  /// of which is asked what `overwritten_states` says
  std::vector<StatePorts> states = {};
  /// gets it
  std::vector<StatePorts>* overwritten = nullptr;
  /// that its estimates are for
  int threads = 1;
};

/// What the code generator is: "tenon 0123456789abcdef", another text as soon as one of its sources
/// is.
std::string source_name();

/// What a program made with these options is for: "x86-64-v3", "cuda:sm_90a".
std::string target_name(const CompileOptions& options);

/// A graph as a program for the processor or a device: one list of steps, kernels wherever there is
/// one, operators' own functions and control flow between them.
Program compile(const Graph& graph, const CompileOptions& options);

/// What would compute those nodes of a graph that have kernels, but for bodies. Nothing is
/// compiled.
std::vector<Decision> decide(const Graph& graph, const CompileOptions& options);

/// The values on the way from a graph to a program.
enum class Stage : std::uint8_t {
  /// the loop nests of its kernels, with their schedules
  Nests,
  /// what is done, in which buffers, in which ways
  Tasks,
  /// where buffers lie in the arena, and when they are alive
  Plan,
  /// what a runtime reads, but for code and constants
  Program,
  /// nests, the code made of them, and its assembly
  Code,
};
/// One of them, as text.
std::string print_code(const Graph& graph, const CompileOptions& options,
                       Stage stage = Stage::Code);

}  // namespace tenon::codegen
