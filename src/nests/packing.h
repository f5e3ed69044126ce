#pragma once

#include "ir/tensor.h"
#include "nests/scalar.h"

#include <cstdint>
#include <vector>

namespace tenon::nests {

/// How the elements of an operand are laid out anew for a nest: as the nest's loops read them. What
/// they read outside of the operand is zero.
struct Packing {
  /// in the nest
  std::size_t buffer = 0;
  /// under which the coordinates below count
  Dims source_dims;
  /// in the operand, of the loops below
  std::vector<Scalar> coordinates;
  /// slowest first: one axis of the new layout each
  std::vector<std::size_t> loops;
  /// of those
  std::vector<std::int64_t> extents;
  /// positions past this, of the first and the last loop together, are zero
  std::int64_t limit = 0;
};

/// Writes a tensor in the order in which a nest reads it. Positions past the packing's limit are
/// left as they are.
void pack(const Packing& packing, const Tensor& tensor, std::byte* target);

}  // namespace tenon::nests
