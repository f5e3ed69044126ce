#pragma once

#include <cstdint>
#include <vector>

namespace tenon::aitemplate {

/// Tensors and operators by number: what AITemplate sorts.
struct SortGraph {
  struct Tensor {
    /// operators
    std::vector<std::size_t> writers, readers;
    std::int64_t depth = 0;
    /// at its largest
    std::uint64_t bytes = 0;
  };
  struct Operator {
    /// tensors
    std::vector<std::size_t> inputs, outputs;
  };
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  /// of the network
  std::vector<std::size_t> outputs;
};

/// AITemplate's order of the tensors that the outputs need: first those that no operator writes, as
/// a walk from the outputs meets them, deeper operands first; then, of the tensors that are ready,
/// the largest, or the one that was ready first.
std::vector<std::size_t> sorted_tensors(const SortGraph& graph);

/// Bytes of a tensor, the most that fits in 64 bits where there are more.
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

}  // namespace tenon::aitemplate
