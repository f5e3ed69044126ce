#pragma once

#include "codegen/cpu/register_tiles.h"
#include "codegen/nest_names.h"
#include "nests/packing.h"

#include <vector>

namespace tenon::codegen::cpu {

/// Adds large non-constant GEMM operands to the packable ones if many register tiles read their
/// columns across rows that lie pages apart: packed first, a tile reads contiguous memory instead
/// of one page per reduction step. The same holds for row operands that are strided along the
/// reduction (`rows_to_pack`).
void add_profitable_packings(std::vector<bool>& may_pack, const NestSequence::NestCall& part,
                             const TileShape& shape, const TargetFacts& target);

/// Replaces packings of non-constant operands, which cannot be computed ahead of time, by copy
/// nests that run before the part. The part then reads their results; the packings leave the list.
std::vector<NestSequence::NestCall> pack_at_run_time(NestSequence& sequence,
                                                     NestSequence::NestCall& part,
                                                     std::vector<nests::Packing>& packings,
                                                     const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cpu
