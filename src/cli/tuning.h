#pragma once

#include "cli/commands.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "tune/cache.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// Runs the standard passes and compiles the graph, with the fastest kernels of the user's tuning
/// cache; tunes unknown kernels first if requested. Reports an unusable cache on stderr and ignores
/// it. Ctrl-C ends the tuning, not the compilation.
driver::CompileRecord compile_tuned(Graph graph, driver::CompileRequest request);

/// Returns the text of an intermediate representation of the compilation.
std::string print_tuned(Graph graph, driver::CompileRequest request, codegen::CompileStage stage);

/// Returns the choice for each kernel.
std::vector<codegen::Decision> decide_tuned(Graph graph, driver::CompileRequest request);

/// Returns options with these choices, from the cache.
codegen::CompileOptions options_tuned(const Graph& graph, driver::CompileRequest request);

/// Tunes the kernels of a graph without running passes. Returns a summary.
std::string tune_graph(const Graph& graph, driver::CompileRequest request);

/// Returns a function that annotates a graph with the fastest kernels of the user's cache for its
/// nodes. For a device includes untimed defaults; prints the number of each on stderr. With `tune`
/// times them first.
std::function<Graph(Graph)> kernel_notes(driver::CompileRequest request);

/// Parses the value of `--tune`: empty (no tuning), "true" (no time limit) or a number of seconds.
/// Throws Error (Usage).
std::optional<double> tuning_seconds(const std::string& text);

/// Returns the request that a command's options describe: target, kernels, threads and tuning.
template <class CommandOptions>
driver::CompileRequest compile_request(const CommandOptions& options, const std::string& tune) {
  driver::CompileRequest request;
  request.target = target_of(options.target, options.cpu, options.precision);
  request.allow_winograd = !options.no_winograd;
  request.threads = options.threads;
  request.tune_seconds = tuning_seconds(tune);
  request.is_untuned = options.untuned;
  request.preferred = options.preferred;
  return request;
}

}  // namespace tenon::cli
