#pragma once

#include "target/target_spec.h"
#include "testing/varied_extents.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon::driver {

/// A model with inputs and expected outputs. Either a folder in the layout of ONNX's backend tests:
/// `model.onnx` and `test_data_set_*` with `input_*.pb` and `output_*.pb`. Or an exported program
/// of PyTorch, `NAME.pt2` or `NAME.core.pt2`, next to `NAME.npz` with `in0`, … and `out0`, ….
struct ConformanceCase {
  std::string name;
  /// Path of the model.
  std::string model;
};

struct ConformanceResult {
  enum class Status { Passed, Failed, ListedFailure, ListedButPassed };
  std::string name;
  Status status = Status::Passed;
  /// why it failed, or the reason in the list
  std::string reason;
  double elapsed_ms = 0;
  /// compiled to a kernel-only program
  bool is_kernel_only = false;
  testing::VariedRuns varied = {};
};

struct ConformanceOptions {
  testing::Tolerance tolerance;
  /// substring of the case's name
  std::string filter;
  /// Optimizes and compiles each model; one that fails to compile fails the case.
  bool is_compiled = false;
  TargetSpec target = {};
  /// replaces every axis of every input by a symbol
  bool is_symbolic = false;
  /// With symbols: also runs the inputs with one extent changed at a time.
  bool varies = false;
  /// folder for the inputs and outputs of those runs, `CASE/test_data_set_3`
  std::string kept_runs;
  /// Known failures, with their reasons.
  std::map<std::string, std::string> expected_failures;
  std::function<void(std::size_t done, std::size_t total)> on_progress;
};

/// Returns the cases in a folder of cases (or the folder itself, if it is one), by name.
std::vector<ConformanceCase> find_conformance_cases(const std::string& folder);

/// Runs the cases on all cores; results are in the order of the cases. A listed case that passes
/// counts as a failure, so that the list stays accurate.
std::vector<ConformanceResult> run_conformance(const std::vector<ConformanceCase>& cases,
                                               const ConformanceOptions& options);

/// Reads a list of lines `case-name  reason`; `#` starts a comment.
std::map<std::string, std::string> read_expected_failures(const std::string& path);

}  // namespace tenon::driver
