#pragma once

#include "cli/commands.h"

#include <string>

namespace tenon::cli {

/// `convert --train`: a step of training in place of the model.
struct ConvertStep {
  bool is_wanted = false;
  std::string loss;  ///< "": the usual one
};
int convert(const ConvertOptions& options, const ConvertStep& step, OutputFormat format);

}  // namespace tenon::cli
