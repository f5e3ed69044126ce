#pragma once

#include "app/run.h"
#include "cli/commands.h"

namespace tenon::cli {

/// `run` with inspection of values inside the network.
int run_observed(const app::RunOptions& options, OutputFormat format);
/// `run` on files of many samples each.
int run_on_data(const app::RunOptions& options, OutputFormat format);

}  // namespace tenon::cli
