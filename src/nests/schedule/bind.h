#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Sets the execution kind of a loop. `Parallel`: an independent loop without a limit (`verify`
/// checks that all enclosing loops are parallel too). `Jam`: an independent loop without a nested
/// jam, `width` positions at a time. `Serial` with width two: a bf16 pair (nests/bf16_dot.h).
/// `Vector`: an independent loop, or loops whose innermost holds one fold, with `width` lanes.
void bind_loop(Block& block, std::size_t loop, LoopKind kind, unsigned width = 1);

}  // namespace tenon::nests
