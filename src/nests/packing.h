#pragma once

#include <cstdint>
#include <vector>

#include "ir/tensor.h"
#include "nests/scalar.h"

namespace tenon::nests {

/// How the elements of an operand are laid out anew for a nest: as the nest's loops read them. What
/// they read outside of the operand is zero.
struct Packing {
  std::size_t buffer = 0;             ///< in the nest
  Dims source_dims;                   ///< under which the coordinates below count
  std::vector<Scalar> coordinates;    ///< in the operand, of the loops below
  std::vector<std::size_t> loops;     ///< slowest first: one axis of the new layout each
  std::vector<std::int64_t> extents;  ///< of those
  std::int64_t limit = 0;             ///< positions past this, of the first and the last loop together, are zero
};

/// Writes a tensor in the order in which a nest reads it. Positions past the packing's limit are left as
/// they are.
void pack(const Packing& packing, const Tensor& tensor, std::byte* target);

}  // namespace tenon::nests
