#pragma once

#include <string>

namespace tenon {

/// Processors' worth of time that control groups, old and new, grant this process: the least of its
/// own group and of every group around it. Infinite where none sets a limit. `root` is the folder
/// that holds `proc` and `sys`.
double group_limit(const std::string& root = "/");

/// How many threads this process may keep busy: what its affinity and its control groups allow.
int usable_threads(const std::string& root = "/");

}  // namespace tenon
