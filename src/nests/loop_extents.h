#pragma once

#include "nests/loop_nest.h"

#include <map>

namespace tenon::nests {

/// Returns the extent of each loop id. Several loops with one id may differ: then the longest
/// counts; no entry if that is unknown.
std::map<std::size_t, Dim> loop_extents(const Block& block);

}  // namespace tenon::nests
