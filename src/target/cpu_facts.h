#pragma once

#include "target/facts.h"

#include <string>
#include <vector>

namespace tenon {

/// What is known of a processor. "native" is this machine: its caches, cores and instructions are
/// read, and how fast they are is that of the described processor most like it. Levels of the
/// architecture
/// ("x86-64-v3") are as the one that estimates were tuned on, but for instructions. Throws Error of
/// kind Usage for a name that is none.
TargetFacts cpu_facts(const std::string& name);
std::vector<std::string> cpu_names();

/// With the caches that the system lists in a folder as /sys/devices/system/cpu/cpu0/cache: sizes
/// and ways, at the speed that `facts` has for the level. As it was where the folder says nothing.
TargetFacts with_listed_caches(TargetFacts facts, const std::string& folder);

}  // namespace tenon
