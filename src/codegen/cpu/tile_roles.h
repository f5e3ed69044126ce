#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "target/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

using nests::Contraction;

/// Returns the distance between elements of consecutive positions of a loop; no value if it varies
/// or is symbolic.
std::optional<std::int64_t> distance_along(const Scalar& load, std::size_t loop);

/// Sorts the reduction loops by element distance, contiguous loops innermost. Symbolic distances
/// count as those of rows and images.
std::vector<const Statement*> sort_by_stride(std::vector<const Statement*> loops,
                                             const Scalar& load);

/// The loops of a contraction that become rows (M) and columns (N) of register tiles. Pointers
/// refer to the analyzed block.
struct TileRoles {
  /// `b` varies along the columns.
  Contraction contraction;
  const Statement* columns = nullptr;
  /// Null if no operand is reused along rows.
  const Statement* rows = nullptr;
  /// Reason of a refusal; empty if possible.
  std::string refusal;
};
TileRoles find_roles(const Block& body, const std::vector<bool>& may_pack);

/// Returns the loop around the rows that iterates over lines of rows, all of which read the same
/// columns; with `inner` (the lines), the loop over images.
const Statement* lines_around(const TileRoles& roles, const Statement* inner = nullptr);

/// Returns how many rows of the operand L1 holds together.
unsigned rows_in_cache(const Scalar& load, std::size_t loop, const TargetFacts& target);

/// Returns the operand bytes of one row, with data shared between overlapping rows counted once.
double bytes_of_row(const Contraction& c);

}  // namespace tenon::codegen::cpu
