#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Where a loop folds what costs much to compute (an exponential), and a later loop computes the
/// same again for what it stores, the first gets a loop before it that writes the numbers to where
/// the later one stores, and both read them there: a softmax takes each exponential once.
void materialise_subexpressions(LoopNest& nest);

}  // namespace tenon::nests
