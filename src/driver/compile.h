#pragma once

#include "codegen/compile.h"
#include "driver/profile/record.h"
#include "driver/tuning/cache.h"
#include "driver/tuning/tuner.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What is asked of a compilation, whoever asks: the command line, a test, another language.
struct CompileRequest {
  /// one of `cpu_names()`, or a device: "cuda:sm_90a"
  std::string cpu = "native";
  /// "f16", "bf16"; of a device also "tf32", "int8"
  std::string precision = "";
  bool allow_winograd = true;
  /// that kernels are chosen for; 0: as many as the process may use
  int threads = 0;
  /// For how long kernels are timed that the tuning cache does not know; nothing: they are not.
  std::optional<double> tune_seconds = {};
  /// estimates decide, whatever the cache says
  bool is_untuned = false;
  /// Names of candidates that are taken wherever they accept, the first first (`preferred_choice`).
  std::vector<std::string> preferred = {};
  /// Shapes that get kernels of their own, each "NAME:8x3x224x224,…".
  std::vector<std::string> specialised_shapes = {};

  /// Constants of these names can be swapped in the program that comes out (of an empty list, every
  /// floating one of rank 1 or more): nothing is folded into them or packed ahead, which costs
  /// speed. Nothing: none can.
  std::optional<std::vector<std::string>> swappable_weights = {};

  /// gets what passes and candidates said
  CompileRecord* record = nullptr;
  /// Gets what planning the program's memory asks (`codegen::CompileOptions`).
  std::optional<codegen::StepProblem>* step_problem = nullptr;
  /// What one run leaves to the next: readers of an input come before what becomes it, where they
  /// can.
  std::vector<StatePorts> states = {};
  /// Gets those that kernels let lie in one place (`codegen::overwritten_states`).
  std::vector<StatePorts>* overwritten = nullptr;

  /// Told of a tuning cache that cannot be used, and how the work goes on: "warning: …".
  std::function<void(const std::string& text)> on_notice = {};
  std::function<void(std::size_t done, std::size_t total)> on_kernel_timed = {};
  std::function<void(const TuneReport& report, double seconds)> on_tuned = {};
  /// asked while kernels are timed: ends that, not the work
  std::function<bool()> is_interrupted = {};
};

/// Runs the standard passes and compiles what comes out, with the kernels that the user's tuning
/// cache says are fastest; times those it does not know first, where asked to.
Program compile_model(Graph graph, const CompileRequest& request);
/// A value on the way to what it would compile, as text.
std::string print_model(Graph graph, const CompileRequest& request, codegen::Stage stage);
/// What it would choose for each kernel.
std::vector<codegen::Decision> decide_kernels(Graph graph, const CompileRequest& request);
/// Options for a graph whose passes have run that choose what it would, of what is known already.
codegen::CompileOptions known_options(const Graph& graph, const CompileRequest& request);
/// Times the kernels of a graph as it is.
TuneReport tune_kernels(const Graph& graph, const CompileRequest& request);

/// The user's tuning cache; nothing where there is none to be read, or it cannot be used, which is
/// told. One that is to be written but cannot be is forgotten at the end.
std::optional<TuningCache> open_tuning_cache(bool writes, const CompileRequest& request);

/// For graphs whose passes have run: the estimates' choice on a processor.
codegen::CompileOptions cpu_options(const std::string& cpu = "native");

}  // namespace tenon
