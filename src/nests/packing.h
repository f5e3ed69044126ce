#pragma once

#include "ir/tensor.h"
#include "nests/scalar.h"

#include <cstdint>
#include <vector>

namespace tenon::nests {

/// The packed layout of an operand: elements in the order in which the nest's loops read them.
/// Reads outside the operand are zero.
struct Packing {
  /// Index in the nest.
  std::size_t buffer = 0;
  /// View of the operand for the coordinates below.
  Dims source_dims;
  /// Coordinates in the operand, over the loops below.
  std::vector<Scalar> coordinates;
  /// Slowest first: one axis of the packed layout each.
  std::vector<std::size_t> loops;
  /// Extents of these loops.
  std::vector<std::int64_t> extents;
  /// Positions beyond this one, counted over the first and the last loop together, are zero.
  std::int64_t limit = 0;
};

/// Packs a tensor. Positions beyond the packing's limit are left untouched.
void pack(const Packing& packing, const Tensor& tensor, std::byte* target);

}  // namespace tenon::nests
