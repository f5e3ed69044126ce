#pragma once

#include "cli/commands.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// Changes to the model before conversion.
struct ConvertChanges {
  /// converts its training step instead
  bool trains = false;
  /// of the training step; "": the default
  std::string loss;
  /// extents of its inputs
  std::vector<std::string> shapes;
};
int convert(const ConvertOptions& options, const ConvertChanges& changes, OutputFormat format);

}  // namespace tenon::cli
