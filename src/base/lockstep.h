#pragma once

#include "base/communicator.h"

#include <functional>
#include <memory>

namespace tenon::inline base {

/// Runs `run` for each of `rank_count` ranks on its own thread, connected by a communicator, and
/// returns when all are done. An exception in one rank aborts ranks that wait for it, and is
/// rethrown.
void run_in_lockstep(int rank_count, const std::function<void(Communicator& ranks)>& run);

/// Returns a communicator with a single rank.
std::unique_ptr<Communicator> one_rank();

}  // namespace tenon::inline base
