#pragma once

#include "codegen/cpu/register_tiles.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

/// Schedule of a contraction whose result has too few columns for a register tile: vector lanes run
/// along the reduction dimension, with several rows in flight.
struct ReductionRoles {
  /// `a` depends on the row; `b` does not.
  Contraction contraction;
  /// A reduction loop along which elements of `a` are contiguous.
  const Statement* lanes = nullptr;
  const Statement* rows = nullptr;
  /// Reason of a refusal; empty if possible.
  std::string refusal;
};
ReductionRoles find_reduction_roles(const Block& body, const std::vector<bool>& may_pack);

/// Schedules the loops of `whole`, nested in the loops `around_it` of `nest`, by the roles of
/// `find_reduction_roles`. Loops outside of the rows become `outermost`. Returns the packing of
/// `b`.
std::vector<Packing> vectorise_reduction(LoopNest& nest, Block& whole,
                                         const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost);

}  // namespace tenon::codegen::cpu
