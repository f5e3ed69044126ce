#pragma once

#include "memory/problem.h"

#include <string>

namespace tenon {

/// The way that swapped values of a program for this target take. From the processor's memory to a
/// file, measured now. From a GPU's to pinned memory of the host's: as `doctor` measured it here,
/// or measured now and kept; what is known of such GPUs where there is none.
memory::Link swap_link(const std::string& target);

/// Lets values be copied that are large enough to be worth it.
void allow_swaps(memory::Problem& problem, memory::Link link);

}  // namespace tenon
