#pragma once

#include "distributed/shards.h"
#include "ir/graph.h"
#include "target/target_spec.h"

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::distributed {

/// Batch inference over shards: files with an array for each input, samples along the first axis.
struct BatchRunOptions {
  /// samples per run; 0: the model's batch, or 32
  std::int64_t batch = 0;
  int thread_count = 0;
  TargetSpec target = {};
};

struct BatchRunResult {
  /// processed by this process
  std::int64_t shards = 0, samples = 0;
  /// all shards of all processes are done
  bool is_complete = false;
};

/// Processes shards until all are done. The result of each has an array for each output, with
/// samples in the same order. The process that finds all shards done writes `index.json` next to
/// the results: every shard in order, with its samples. Throws Error if arrays do not fit the
/// model, or if outputs have no sample axis.
BatchRunResult run_shards(Graph model, Shards& shards, const std::string& output,
                          const BatchRunOptions& options,
                          const std::function<void(const std::string& shard)>& on_shard,
                          const std::function<bool()>& should_stop);

}  // namespace tenon::distributed
