#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Loops of folds along which something is read in runs, as in `s[r // 32]`, become two, of runs
/// and of the positions in one: `s[ro]` is then the same for all of a run, and nothing is divided.
/// So do innermost loops that store, where runs are half a vector of `lanes` or more: rows that are
/// gathered side by side. A factor of a sum of f32 that is then the same for all of a run is
/// multiplied by once a run. Where an extent is a number that the run's length divides; the order
/// of passes stays.
void split_runs(LoopNest& nest, std::int64_t lanes);

}  // namespace tenon::nests
