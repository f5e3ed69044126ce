#pragma once

#include "cli/commands.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// What becomes of the model on its way to the other format.
struct ConvertChanges {
  /// a step of training takes its place
  bool trains = false;
  /// of that; "": the usual one
  std::string loss;
  /// extents of its inputs
  std::vector<std::string> shapes;
};
int convert(const ConvertOptions& options, const ConvertChanges& changes, OutputFormat format);

}  // namespace tenon::cli
