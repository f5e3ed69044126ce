#pragma once

#include "driver/parallel/shards.h"
#include "ir/graph.h"

#include <cstdint>
#include <functional>
#include <string>

namespace tenon {

/// A model run over shards: files with an array for each of its inputs, samples along the first
/// axis.
struct BatchRunOptions {
  /// samples a run; 0: as the model says, or 32
  std::int64_t batch = 0;
  int thread_count = 0;
  std::string target = "native";
};

struct BatchRunResult {
  /// that this process did
  std::int64_t shards = 0, samples = 0;
  /// all shards of all processes
  bool is_complete = false;
};

/// Works shards off until none is left; the result of each has an array for each output, samples in
/// the same order. Whoever finds all done writes `index.json` beside them: every shard in order,
/// with its samples. Throws Error where arrays do not fit the model, or outputs have no samples.
BatchRunResult run_shards(Graph model, Shards& shards, const std::string& output,
                          const BatchRunOptions& options,
                          const std::function<void(const std::string& shard)>& on_shard,
                          const std::function<bool()>& should_stop);

}  // namespace tenon
