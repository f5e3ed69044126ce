#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "target/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

using nests::Contraction;

/// How far apart the elements of neighbouring positions of a loop lie; nothing where that is not
/// the same everywhere or only the run knows.
std::optional<std::int64_t> distance_along(const Scalar& load, std::size_t loop);

/// The loops of a sum, those along which elements lie closest innermost. Distances that only the
/// run knows are those of whole rows and images.
std::vector<const Statement*> closest_last(std::vector<const Statement*> loops, const Scalar& load);

/// Which loops of a sum of products become rows and columns of tiles; they belong to the block it
/// was found in.
struct Roles {
  /// b runs along the columns
  Contraction sum;
  const Statement* columns = nullptr;
  /// none where nothing is shared
  const Statement* rows = nullptr;
  /// why there are none; empty where there are
  std::string refusal;
};
Roles find_roles(const Block& body, const std::vector<bool>& may_pack);

/// The loop around the rows, where it counts lines of them: all lines read the same columns. So do
/// images, around the lines (`inner`).
const Statement* lines_around(const Roles& roles, const Statement* inner = nullptr);

/// How many rows of the operand the first cache holds side by side.
unsigned rows_in_cache(const Scalar& load, std::size_t loop, const TargetFacts& target);

/// What one row reads, neighbours' shares of what several read left out.
double bytes_of_row(const Contraction& c);

}  // namespace tenon::codegen::cpu
