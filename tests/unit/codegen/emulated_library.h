#pragma once

#include "program/library_call.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::testing {

/// Computes a vendor library's call on the processor: sums in double, rounded once.
void run_library(const LibraryCall& call, std::span<const long long> extents,
                 const std::vector<void*>& buffers);

}  // namespace tenon::testing
