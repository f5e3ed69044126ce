#pragma once

#include "nests/loop_nest.h"

#include <vector>

namespace tenon::nests {

/// Runs the outermost loops of a sum, `count` of them, around the loops that it stood in, whose
/// sums wait meanwhile in a buffer of the thread:
///
///     for i { t = 0; for k { for r { t += … } } rest }
///     for i { s[i] = 0 } for k { for i { t = s[i]; for r { t += … } s[i] = t } } for i { t = s[i];
///     rest }
///
/// May be applied to independent loops `inside` that stand directly in each other, the innermost of
/// which holds nothing but a local, the loops of its fold and what is done with it. `lanes` is a
/// loop around them whose passes run side by side: it has an axis of the buffer, too. Each element
/// is added up in the order it was: not a bit changes.
void stage_sum(LoopNest& nest, Block& block, const std::vector<std::size_t>& inside,
               std::size_t lanes, std::size_t count = 1);

}  // namespace tenon::nests
