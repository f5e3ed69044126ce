#pragma once

#include "driver/varied_extents.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// One folder in the layout of ONNX's backend tests: `model.onnx` and `test_data_set_*` with
/// `input_*.pb` and `output_*.pb`.
struct ConformanceCase {
  std::string name;
  std::string folder;
};

struct ConformanceResult {
  enum class Status { Passed, Failed, ListedFailure, ListedButPassed };
  std::string name;
  Status status = Status::Passed;
  /// why it failed, or the list's reason
  std::string reason;
  double elapsed_ms = 0;
  /// compiled, and no operator ran as a C++ function
  bool is_kernels_alone = false;
  VariedRuns varied = {};
};

struct ConformanceOptions {
  Tolerance tolerance;
  /// a part of the case's name
  std::string filter;
  /// Optimise and compile each model; one that cannot be compiled fails.
  bool is_compiled = false;
  /// that cases are compiled for
  std::string target = "native";
  /// every axis of every input is a symbol of its own
  bool is_symbolic = false;
  /// With symbols: beside the case's own inputs, run them with one extent changed at a time.
  bool varies = false;
  /// a folder that gets what those runs read and gave, `CASE/test_data_set_3`
  std::string kept_runs;
  /// Cases that are known to fail, with the reason.
  std::map<std::string, std::string> expected_failures;
  std::function<void(std::size_t done, std::size_t total)> on_progress;
};

/// The cases in a folder of cases (or the folder itself, if it is one), by name.
std::vector<ConformanceCase> find_conformance_cases(const std::string& folder);

/// Runs the cases on all cores; results in the order of the cases. A listed case that passes is a
/// failure: the list is kept honest.
std::vector<ConformanceResult> run_conformance(const std::vector<ConformanceCase>& cases,
                                               const ConformanceOptions& options);

/// Reads a list of lines `case-name  reason`; `#` starts a comment.
std::map<std::string, std::string> read_expected_failures(const std::string& path);

}  // namespace tenon
