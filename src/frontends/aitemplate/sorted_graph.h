#pragma once

#include <cstdint>
#include <vector>

namespace tenon::aitemplate {

/// Tensors and operators by number: what AITemplate sorts.
struct SortGraph {
  struct Tensor {
    std::vector<std::size_t> writers, readers;  ///< operators
    std::int64_t depth = 0;
    std::uint64_t bytes = 0;  ///< at its largest
  };
  struct Operator {
    std::vector<std::size_t> inputs, outputs;  ///< tensors
  };
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<std::size_t> outputs;  ///< of the network
};

/// AITemplate's order of the tensors that the outputs need: first those that no operator writes, as
/// a walk from the outputs meets them, deeper operands first; then, of the tensors that are ready,
/// the largest, or the one that was ready first.
std::vector<std::size_t> sorted_tensors(const SortGraph& graph);

/// Bytes of a tensor, the most that fits in 64 bits where there are more.
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

}  // namespace tenon::aitemplate
