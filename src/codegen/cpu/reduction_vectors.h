#pragma once

#include "codegen/cpu/tiles.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// How a sum of products is turned whose result has no columns for a tile: the lanes of a vector
/// run along the sum itself, and several rows are in flight at once.
struct ReductionRoles {
  /// a differs from row to row, b does not
  Contraction sum;
  /// a loop of the sum: elements of a lie side by side along it
  const Statement* lanes = nullptr;
  const Statement* rows = nullptr;
  /// why there can be none; empty where there can
  std::string refusal;
};
ReductionRoles find_reduction_roles(const Block& body, const std::vector<bool>& may_pack);

/// Turns the loops of `whole`, which stands in the loops `around_it` of `nest`, as
/// `find_reduction_roles` says it can be; those outside of the rows are run as `outermost`. Gives
/// how b is to be laid out anew.
std::vector<Packing> vectorise_reduction(LoopNest& nest, Block& whole,
                                         const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost);

}  // namespace tenon::codegen::cpu
