#pragma once

#include "app/targets.h"
#include "driver/compile.h"

#include <functional>
#include <optional>
#include <string>

namespace tenon::app {

/// Compiles a graph with the callbacks of the caller.
using Compile = std::function<driver::CompileRecord(Graph, driver::CompileRequest)>;

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

/// Returns a function that annotates a graph with the fastest kernels of the user's cache for its
/// nodes. For a device includes untimed defaults, and tells the number of each by `on_notice`; with
/// `tune_seconds` times them first.
std::function<Graph(Graph)> kernel_notes(driver::CompileRequest request);

}  // namespace tenon::app
