#pragma once

#include "app/compile_request.h"
#include "ops/definition/evaluation.h"
#include "testing/compare.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::app {

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, shapes;
  /// @DIR, @FILE.npz, and names of further values to return
  std::vector<std::string> outputs;
  std::string expect, save_inputs;
  /// pixel normalization
  std::vector<double> mean = {0}, scale = {1};
  std::int64_t batch = 0;
  double absolute = 1e-7, relative = 1e-3;
  int threads = 0;
  /// empty: compiled if possible
  std::string target;
  /// regardless of the file's extension
  bool trust_program = false;
  bool untuned = false;
  /// candidates to prefer wherever they are applicable
  std::vector<std::string> preferred;
  /// of all loops together; 0: unlimited
  std::int64_t max_trips = 0;
  std::string precision;
  /// "true", or a folder for the node's operands
  std::string check_nan;
  /// 0: any magnitude
  double check_range = 0;
  /// DIR[:PATTERN]
  std::string dump_values;
  /// @DIR of .npz files with many samples each; empty: one run
  std::string data;
};

struct RunCallbacks {
  Compile compile;
  /// Starts to watch for interruptions, until the returned function is destroyed; that function
  /// returns whether the run should end. May be empty.
  std::function<std::function<bool()>()> watch_interrupts;
  /// Nodes that the reference has evaluated. May be empty.
  std::function<void(std::size_t done, std::size_t total)> on_progress;
};

struct RunResult {
  /// the method: "12 steps"
  std::string what;
  std::vector<std::string> names;
  std::vector<Datum> outputs;
  double elapsed_ms = 0;
  /// with the files of `expect`, one per output; empty without it
  std::vector<testing::Comparison> comparisons;
};

/// Runs a model or program once; reads the inputs and writes the files that the options name.
RunResult run(const RunOptions& options, const RunCallbacks& callbacks);

}  // namespace tenon::app
