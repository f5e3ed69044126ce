#pragma once

#include <cstdint>
#include <vector>

namespace tenon::documents::aitemplate {

/// Tensors and operators by index, the input of AITemplate's sort.
struct SortGraph {
  struct Tensor {
    /// Operator indices.
    std::vector<std::size_t> writers, readers;
    std::int64_t depth = 0;
    /// At the largest extents.
    std::uint64_t bytes = 0;
  };
  struct Operator {
    /// Tensor indices.
    std::vector<std::size_t> inputs, outputs;
  };
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  /// Outputs of the network.
  std::vector<std::size_t> outputs;
};

/// Returns AITemplate's order of the tensors that the outputs need: first the source tensors in the
/// order of a depth-first walk from the outputs, deeper operands first; then, among ready tensors,
/// the largest, or the one that was ready first.
std::vector<std::size_t> sorted_tensors(const SortGraph& graph);

/// Saturates at the largest 64-bit number.
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

}  // namespace tenon::documents::aitemplate
