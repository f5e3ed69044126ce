#pragma once

#include "codegen/cpu/register_tiles.h"
#include "codegen/cpu/schedule.h"
#include "codegen/cpu/winograd_nests.h"
#include "nests/nest_pass.h"
#include "target/facts.h"

#include <span>
#include <vector>

namespace tenon::codegen::cpu {

using nests::NestPass;

/// Returns the passes over nests of a CPU in order: those that precede the choice between
/// candidates, then those of the candidates.
std::span<const nests::NestPassInfo> nest_pass_list();

/// Returns the passes over the nests of a node that precede the choice between candidates.
/// `facts` must outlive them.
std::vector<NestPass> node_passes(const TargetFacts& facts, bool allow_winograd);

/// Returns the passes of a candidate, over the nest that it computes. They schedule all nests.
std::vector<NestPass> register_tile_passes(const TileShape& shape, const TargetFacts& facts);
std::vector<NestPass> integer_tile_passes(const TileShape& shape, const TargetFacts& facts);
std::vector<NestPass> winograd_passes(const WindowContraction& window, std::int64_t block,
                                      const TargetFacts& facts);
std::vector<NestPass> loop_passes(const LoopShape& shape);

}  // namespace tenon::codegen::cpu
