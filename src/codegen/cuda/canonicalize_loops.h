#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Removes loops with one iteration.
void drop_unit_loops(Block& block);

/// Collapses the two innermost loops of an elementwise or copying nest if the last has an odd
/// extent, so that a thread can vectorize over several neighbours.
void collapse_odd_loops(LoopNest& nest);

/// Strip-mines loops that loads use through quotient and remainder by a constant, e.g. heads in
/// groups.
void split_divided_loops(LoopNest& nest);

}  // namespace tenon::codegen::cuda
