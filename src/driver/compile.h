#pragma once

#include "codegen/compile.h"
#include "driver/pipeline.h"
#include "driver/stages.h"
#include "driver/targets.h"
#include "tune/cache.h"
#include "tune/tuner.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::driver {

/// A compiled model. The rest is for diagnostics and empty unless recorded
/// (`CompileSettings::keeps_record`).
struct CompileRecord : codegen::Compiled {
  /// Result of the passes.
  Graph graph;
  std::vector<PassReport> passes;
  /// Passes over nests, if requested (`PassServices::reports_nests`).
  std::vector<PassReport> nest_passes;
  /// Remarks of passes and candidates.
  passes::Remarks remarks;
};

/// Options of a compilation, for the command line, tests and bindings.
struct CompileRequest : codegen::CompileSettings {
  TargetSpec target = {};
  /// Time limit for tuning kernels that the tuning cache lacks; absent: no tuning.
  std::optional<double> tune_seconds = {};
  /// uses the cost model only and ignores the cache
  bool is_untuned = false;
  /// Names of candidates to prefer wherever they are applicable, in order of preference
  /// (`preferred_choice`).
  std::vector<std::string> preferred = {};
  /// Shape specialization: shapes that get kernels of their own, each "NAME:8x3x224x224,…".
  std::vector<std::string> specialised_shapes = {};

  /// Names of constants that can be replaced in the compiled program (an empty list: every floating
  /// constant of rank 1 or more). These are not folded or packed at compile time, which costs
  /// speed. Absent: no constant can be replaced.
  std::optional<std::vector<std::string>> swappable_weights = {};

  PassServices passes = {};

  /// Called with a warning if a tuning cache cannot be used, or if unsound nests are replaced
  /// (`cpu_options`).
  std::function<void(const std::string& text)> on_notice = {};
  std::function<void(std::size_t done, std::size_t total)> on_kernel_timed = {};
  std::function<void(const tune::TuneReport& report, double seconds)> on_tuned = {};
  /// polled during tuning: ends the tuning, not the compilation
  std::function<bool()> is_interrupted = {};
};

/// Runs the standard passes and compiles the graph, with the fastest kernels of the user's tuning
/// cache; tunes unknown kernels first if requested.
CompileRecord compile_model(Graph graph, const CompileRequest& request);
/// A pass of a compilation.
struct ListedPass {
  std::string name;
  bool is_over_nests = false;
  /// Reason for its position in the list.
  std::string reason;
};
/// Returns the passes of a compilation in order.
std::vector<ListedPass> list_passes(const CompileRequest& request);
/// Runs the stages of a compilation that have passes, up to a pass, for the callbacks of the
/// request; generates no code. Later passes over nests may run, without a callback. Throws Error
/// (Usage) for an unknown name.
void run_stages(Graph graph, const CompileRequest& request, const std::string& stop_after);
/// Compiles a graph without the tuning cache.
Program compile_graph(Graph graph, const TargetSpec& target = {}, bool allow_winograd = true);
/// Returns the text of an intermediate representation of the compilation.
std::string print_model(Graph graph, const CompileRequest& request, codegen::CompileStage stage);
/// Returns the choice for each kernel.
std::vector<codegen::Decision> decide_kernels(Graph graph, const CompileRequest& request);
/// Returns options for a graph after its passes, with the choices of the preferences and the cache.
codegen::CompileOptions known_options(const Graph& graph, const CompileRequest& request);
/// Tunes the kernels of a graph without running passes.
tune::TuneReport tune_kernels(const Graph& graph, const CompileRequest& request);

/// Opens the user's tuning cache; nullopt if the file is missing, or after a warning if it cannot
/// be used. A cache that cannot be written is kept in memory only.
std::optional<tune::TuningCache> open_tuning_cache(bool writes, const CompileRequest& request);

/// Returns options for graphs after their passes: the cost model's choice. If the nests of a
/// candidate are unsound, the next candidate takes its place with a warning on the standard error
/// stream; with TENON_STRICT in the environment (tests), the error is thrown.
codegen::CompileOptions target_options(const TargetSpec& target);
/// The same for a target by name.
codegen::CompileOptions cpu_options(const std::string& target = "native");

}  // namespace tenon::driver
