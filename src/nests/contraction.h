#pragma once

#include "nests/nest_builder.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

/// The parts of a contraction nest `for parallel… { t = 0; for reduction… { t += a * b }; epilogue…
/// }`.
struct Contraction {
  std::vector<const Statement*> parallel;
  std::vector<const Statement*> reduction;
  /// The sum at positions 0 and 1, then the epilogue.
  const Block* inner = nullptr;
  /// Loads of f32, f16 or bf16.
  Scalar a, b;
};
/// Matches any factors, in the order of the product.
std::optional<Contraction> find_general_contraction(const Block& body);
std::optional<Contraction> find_contraction(const LoopNest& nest);
std::optional<Contraction> find_contraction(const Block& body);
/// Returns whether the epilogue accesses consecutive elements (or a single one) along the loop.
bool suits_columns(const Contraction& contraction, std::size_t loop);

/// Removes casts around factors of a contraction. Products of narrow elements are exact and loads
/// widen, so these casts have no effect except to hide the contraction from the matcher.
void drop_casts_of_factors(LoopNest& nest);

/// Returns whether all elements that a load reads can be packed: it stays inside its buffer, or
/// reads zeros outside.
bool can_be_repacked(const Scalar& load);

}  // namespace tenon::nests
