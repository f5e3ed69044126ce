#pragma once

#include "cli/commands.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// What becomes of the model on its way to the other format.
struct ConvertChanges {
  bool trains = false;              ///< a step of training takes its place
  std::string loss;                 ///< of that; "": the usual one
  std::vector<std::string> shapes;  ///< extents of its inputs
};
int convert(const ConvertOptions& options, const ConvertChanges& changes, OutputFormat format);

}  // namespace tenon::cli
