#pragma once

#include "cli/commands.h"

#include <cstdint>
#include <string>

namespace tenon::cli {

struct PlanOptions {
  std::string model, budget, device, reading = "retained", method = "search", output, html;
  bool recompute = false, swap = false, split = false, frontier = false, compare = false,
       no_in_place = false;
  std::uint64_t alignment = 64, step_limit = 0;
  /// of a compiled training step
  std::string target, precision;
  // A training step on many ranks.
  /// optimizer; loss; a description in JSON; "8,64,1024"
  std::string train, loss, cluster, ranks;
  /// samples of each rank
  std::int64_t batch = 0;
};

/// `plan` of a training step on many ranks.
int plan_on_cluster(const PlanOptions& options, OutputFormat format);

}  // namespace tenon::cli
