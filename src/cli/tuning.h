#pragma once

#include "codegen/compile.h"
#include "driver/profile/record.h"
#include "driver/tuning/cache.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// What a command line says about which kernels are chosen.
struct TuningOptions {
  /// or a device: "cuda:sm_90a"
  std::string cpu = "native";
  bool allow_winograd = true;
  int threads = 0;
  /// empty: only what is known already is used; "true" or a number of seconds
  std::string tune;
  /// not even that
  bool untuned = false;
  /// Shapes that get kernels of their own, each "NAME:8x3x224x224,…".
  std::vector<std::string> specialised_shapes = {};
  /// "f16", "bf16"; of a device also "tf32", "int8"
  std::string precision = "";
  /// candidates that are taken wherever they accept
  std::vector<std::string> preferred = {};
  /// as in CompileRequest
  std::optional<std::vector<std::string>> swappable_weights = {};
  /// gets what passes and candidates said
  CompileRecord* record = nullptr;
  /// as in CompileRequest
  std::optional<codegen::StepProblem>* step_problem = nullptr;
  /// likewise
  std::vector<StatePorts> states = {};
  /// likewise
  std::vector<StatePorts>* overwritten = nullptr;
};

/// Runs the standard passes and compiles what comes out, with the kernels that the user's tuning
/// cache says are fastest; times those it does not know first, where asked to. A cache that cannot
/// be used is told about on stderr and left aside. Ctrl-C ends the timing, not the work.
Program compile_tuned(Graph graph, const TuningOptions& options);

/// A value on the way to what it would compile, as text.
std::string print_tuned(Graph graph, const TuningOptions& options, codegen::Stage stage);

/// What it would choose for each kernel.
std::vector<codegen::Decision> decide_tuned(Graph graph, const TuningOptions& options);

/// Options that choose so, of what is known already.
codegen::CompileOptions options_tuned(const Graph& graph, const TuningOptions& options);

/// Times the kernels of a graph as it is. Gives the lines that say what came of it.
std::string tune_graph(const Graph& graph, const TuningOptions& options);

/// What notes in a graph the kernels that the user's cache says are fastest for its nodes as they
/// are. Of a device also those that are taken untimed; a line on stderr says how many of each. With
/// `tune` they are timed first.
std::function<Graph(Graph)> kernel_notes(const TuningOptions& options);

/// Reads the value of `--tune`: nothing, or how many seconds. Throws Error (Usage).
double tuning_seconds(const std::string& text);

}  // namespace tenon::cli
