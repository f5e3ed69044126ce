#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/cpu/tiles.h"

namespace tenon::codegen::cpu {

/// How a sum of products is turned whose result has no columns for a tile: the lanes of a vector run
/// along the sum itself, and several rows are in flight at once.
struct ReductionRoles {
  Contraction sum;                   ///< a differs from row to row, b does not
  const Statement* lanes = nullptr;  ///< a loop of the sum: elements of a lie side by side along it
  const Statement* rows = nullptr;
  std::string refusal;  ///< why there can be none; empty where there can
};
ReductionRoles find_reduction_roles(const Block& body, const std::vector<bool>& may_pack);

/// Turns the loops of `whole`, which stands in the loops `around_it` of `nest`, as `find_reduction_roles` says it
/// can be; those outside of the rows are run as `outermost`. Gives how b is to be laid out anew.
std::vector<Packing> vectorise_reduction(LoopNest& nest, Block& whole, const std::vector<Statement>& around_it,
                                  const std::vector<bool>& may_pack, const TileShape& shape, LoopKind outermost);

}  // namespace tenon::codegen::cpu
