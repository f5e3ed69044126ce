#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cuda {

/// Returns a packed layout of constant weights for a contraction in scalar loops, with the result's
/// innermost loop innermost: threads that compute neighbouring channels of a depthwise or grouped
/// convolution then read neighbouring weights. Returns nullopt if the weights have that layout, are
/// not constant or have symbolic extents.
std::optional<nests::Packing> loop_packing(const LoopNest& nest,
                                           const nests::Contraction& contraction,
                                           const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cuda
