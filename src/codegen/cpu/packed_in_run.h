#pragma once

#include "codegen/cpu/tiles.h"
#include "codegen/nest_names.h"
#include "nests/packing.h"

#include <vector>

namespace tenon::codegen::cpu {

/// Adds to what may be packed the large operands of a product that are no constants, but which many
/// tiles go down while their rows lie whole pages apart: packed first, a tile reads one piece of
/// memory rather than a page for each step of its sum. So are rows of tiles of that shape that are
/// read across a sum (`rows_to_pack`).
void add_worth_packing(std::vector<bool>& may_pack, const NestSequence::Part& part,
                       const TileShape& shape, const TargetFacts& target);

/// Packings of what is no constant, which nobody can do ahead: a nest each that does it in the run,
/// to stand before the part, which then reads what that made. They leave the list.
std::vector<NestSequence::Part> pack_in_run(NestSequence& sequence, NestSequence::Part& part,
                                            std::vector<nests::Packing>& packings,
                                            const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cpu
