#pragma once

#include "codegen/nest_names.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cpu {

/// How loops are turned where they are not tiles.
struct LoopShape {
  /// vectors in flight at once, in the simplest loops
  unsigned interleave = 4;
  /// the loop that becomes lanes; nothing: the cheapest
  std::optional<std::size_t> along;
};
/// Decides which loops are shared out among threads and which become vectors. Gives what running it
/// costs, roughly in vector instructions.
double schedule(LoopNest& nest, const LoopShape& shape = {});
/// What that counts for an extent that only the run knows.
inline constexpr double kUnknownExtent = 64;
/// Only the vectors, in a block of the nest.
void vectorise(const LoopNest& nest, Block& block);
/// The loops that may become lanes instead of those that are cheapest: each with its cost.
struct LoopCost {
  std::size_t loop = 0;
  double cost = 0;
};
std::vector<LoopCost> other_vectors(const LoopNest& nest);

}  // namespace tenon::codegen::cpu
