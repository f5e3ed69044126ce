#pragma once

#include "nests/loop_nest.h"

#include <map>

namespace tenon::nests {

/// How far loops run, by id. Loops of one id follow each other in a nest and may differ: then the
/// longest counts, and there is none where that cannot be told.
std::map<std::size_t, Dim> loop_extents(const Block& block);

}  // namespace tenon::nests
