#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Eliminates expensive recomputation between loops: if a loop folds an expression such as an
/// exponential, and a later loop stores the same expression, a new loop stores it first, and both
/// read it from there. A softmax then computes each exponential once.
void materialise_subexpressions(LoopNest& nest);

}  // namespace tenon::nests
