#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Says how the passes of a loop are run. `Parallel` may be said of an independent loop without a
/// limit (that all around it are parallel too is for the end: `verify`), `Jam` of an independent
/// loop with no jam inside, of so many positions at a time, `Serial` with a width of two of a pair
/// (nests/pairs.h), `Vector` of an independent loop, or of loops of which the innermost holds one
/// fold, in so many lanes.
void bind_loop(Block& block, std::size_t loop, LoopKind kind, unsigned width = 1);

}  // namespace tenon::nests
