#pragma once

#include <string>

namespace tenon::inline runtime {

/// Returns the CPU quota of this process in processors, for cgroups v1 and v2: the minimum over its
/// group and all ancestors; infinity without a limit. `root` contains `proc` and `sys`.
double group_limit(const std::string& root = "/");

/// Number of threads that affinity and cgroups allow.
int usable_threads(const std::string& root = "/");

}  // namespace tenon::inline runtime
