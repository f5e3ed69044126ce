#pragma once

#include "nests/nest_builder.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

/// The parts of a nest `for parallel… { t = 0; for reduction… { t += a * b }; rest… }`.
struct Contraction {
  std::vector<const Statement*> parallel;
  std::vector<const Statement*> reduction;
  /// the sum at positions 0 and 1, then the rest
  const Block* inner = nullptr;
  /// loads of f32, f16 or bf16
  Scalar a, b;
};
/// Of any factors, as they stand in the product.
std::optional<Contraction> find_sum_of_products(const Block& body);
std::optional<Contraction> find_contraction(const LoopNest& nest);
std::optional<Contraction> find_contraction(const Block& body);
/// Whether everything behind the sum reads and writes neighbours (or one element) along the loop.
bool suits_columns(const Contraction& sum, std::size_t loop);

/// Products of narrow elements are exact, and loads widen what they read: a cast around a factor of
/// a sum says nothing, and hides the sum of products. Takes such casts away.
void drop_casts_of_factors(LoopNest& nest);

/// Whether all that a load reads can be stored ahead: nothing outside of its buffer, or zeros
/// there.
bool can_be_laid_anew(const Scalar& load);

}  // namespace tenon::nests
