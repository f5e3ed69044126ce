#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Simplifies indices: folds conditions of constants, and splits quotients and remainders by a
/// constant into terms that it divides and a rest, e.g. (768 i + j) // 768 with j < 768 to i.
/// Indices of merged or split axes (reshapes) then become affine.
void simplify_indices(LoopNest& nest);

}  // namespace tenon::nests
