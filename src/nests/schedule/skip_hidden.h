#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// What a mask of positions hides from all rows of a pass is not computed: attention whose scores
/// are `(key <= row) ? score : -inf`, in stages that hand each other scores and shares in buffers
/// of the thread. Every loop over keys, of all stages, ends where no row of the pass sees further.
/// May be applied where folds over keys get nothing from hidden ones: a maximum -inf, a sum 0 (a
/// share of 0 times a value, whatever that is: a value that is not finite and hidden from all rows
/// of a pass does not make NaN of them), and where nobody else reads what hidden keys would have
/// written. Gives whether it changed anything.
bool skip_hidden(LoopNest& nest);

}  // namespace tenon::nests
