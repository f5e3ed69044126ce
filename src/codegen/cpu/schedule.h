#pragma once

#include "codegen/nest_names.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cpu {

/// Schedule options of loops without register tiles.
struct LoopShape {
  /// Unroll factor of vectors in the simplest loops.
  unsigned interleave = 4;
  /// The loop to vectorize; default: the cheapest.
  std::optional<std::size_t> along;
};
/// Chooses parallel and vectorized loops. Returns the estimated cost, roughly in vector
/// instructions.
double schedule(LoopNest& nest, const LoopShape& shape = {});
/// Iterations assumed for an extent that is unknown at compile time.
inline constexpr double kUnknownExtent = 64;
/// Vectorizes a block of the nest without parallelizing it.
void vectorise(const LoopNest& nest, Block& block);
/// An alternative loop to vectorize, and its cost.
struct LoopCost {
  std::size_t loop = 0;
  double cost = 0;
};
std::vector<LoopCost> vectorize_others(const LoopNest& nest);

}  // namespace tenon::codegen::cpu
