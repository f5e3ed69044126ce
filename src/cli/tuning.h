#pragma once

#include "codegen/compile.h"
#include "driver/compile.h"
#include "tune/cache.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// Command-line options about kernel choice.
struct TuningOptions {
  /// or a device: "cuda:sm_90a"
  std::string target = "native";
  bool allow_winograd = true;
  int threads = 0;
  /// empty: uses the cache only; "true" or a number of seconds: tunes
  std::string tune;
  /// ignores the cache too
  bool untuned = false;
  /// Shape specialization: shapes that get kernels of their own, each "NAME:8x3x224x224,…".
  std::vector<std::string> specialised_shapes = {};
  /// "f16", "bf16"; on a device also "tf32", "int8"
  std::string precision = "";
  /// candidates to prefer wherever they are applicable
  std::vector<std::string> preferred = {};
  /// as in CompileRequest
  std::optional<std::vector<std::string>> swappable_weights = {};
  /// receives the remarks of passes and candidates
  CompileRecord* record = nullptr;
  /// as in CompileRequest
  std::optional<codegen::StepProblem>* step_problem = nullptr;
  /// likewise
  std::vector<StatePorts> states = {};
  /// likewise
  std::vector<StatePorts>* overwritten = nullptr;
};

/// Runs the standard passes and compiles the graph, with the fastest kernels of the user's tuning
/// cache; tunes unknown kernels first if requested. Reports an unusable cache on stderr and ignores
/// it. Ctrl-C ends the tuning, not the compilation.
Program compile_tuned(Graph graph, const TuningOptions& options);

/// Returns the text of an intermediate representation of the compilation.
std::string print_tuned(Graph graph, const TuningOptions& options, codegen::CompileStage stage);

/// Returns the choice for each kernel.
std::vector<codegen::Decision> decide_tuned(Graph graph, const TuningOptions& options);

/// Returns options with these choices, from the cache.
codegen::CompileOptions options_tuned(const Graph& graph, const TuningOptions& options);

/// Tunes the kernels of a graph without running passes. Returns a summary.
std::string tune_graph(const Graph& graph, const TuningOptions& options);

/// Returns a function that annotates a graph with the fastest kernels of the user's cache for its
/// nodes. For a device includes untimed defaults; prints the number of each on stderr. With `tune`
/// times them first.
std::function<Graph(Graph)> kernel_notes(const TuningOptions& options);

/// Parses the value of `--tune`: empty, or seconds. Throws Error (Usage).
double tuning_seconds(const std::string& text);

}  // namespace tenon::cli
