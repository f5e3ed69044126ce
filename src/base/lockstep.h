#pragma once

#include "base/communicator.h"

#include <functional>
#include <memory>

namespace tenon {

/// Calls `run` once for each of `rank_count` ranks, each in a thread of its own, with a
/// communicator between them, and returns when all are done. What one of them throws ends those
/// that wait for it, and is thrown here.
void run_in_lockstep(int rank_count, const std::function<void(Communicator& ranks)>& run);

/// The only rank of its kind.
std::unique_ptr<Communicator> one_rank();

}  // namespace tenon
