#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Loops that run once are none.
void drop_unit_loops(Block& block);

/// The two innermost loops of a nest that only moves or computes elements, as one, where the last
/// has an odd number of turns: a thread can then do several neighbours and write them at once.
void join_odd_loops(LoopNest& nest);

}  // namespace tenon::codegen::cuda
