#pragma once

#include "diagnose/diff.h"

#include <string>
#include <vector>

namespace tenon::app {

struct DiffOptions {
  std::string a, b;
  std::vector<std::string> inputs, shapes;
  /// "reference,cpu"
  std::string targets;
  double absolute = 1e-5, relative = 1e-3;
  int threads = 0;
};

struct DiffResult {
  std::string a, b;
  diagnose::ValuesDiff values;
  /// The pass after which the first difference occurs, for one model in the reference and compiled;
  /// "code generation" without such a pass, empty without a difference.
  std::string pass;
};

/// Compares intermediate values of two models, two targets or two dumps on the same inputs.
DiffResult diff(const DiffOptions& options);

}  // namespace tenon::app
