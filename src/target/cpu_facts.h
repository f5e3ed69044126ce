#pragma once

#include "target/facts.h"

#include <string>
#include <vector>

namespace tenon::inline target {

/// Returns the facts of a processor. "native" is this machine: caches, cores and instruction sets
/// are detected, rates come from the most similar described processor. An architecture level
/// ("x86-64-v3") has the facts of the processor that the cost model was tuned on, except for its
/// instructions. Throws Error of kind Usage for an unknown name.
TargetFacts cpu_facts(const std::string& name);
std::vector<std::string> cpu_names();

/// Replaces the cache levels by those that the system lists in a folder such as
/// /sys/devices/system/cpu/cpu0/cache: sizes and associativity; bandwidths stay as in `facts`.
/// Returns `facts` unchanged if the folder lists no caches.
TargetFacts with_listed_caches(TargetFacts facts, const std::string& folder);

}  // namespace tenon::inline target
