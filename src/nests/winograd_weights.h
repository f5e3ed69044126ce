#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// Weights of a 3×3 Winograd convolution, F(2,3) or F(4,3).
struct WinogradWeights {
  /// The sequence's buffer of the original weights.
  std::size_t source = 0;
  /// Outputs along the edge of a tile: 2 or 4.
  int tile = 4;
  /// Adjacent outputs in the packed layout: a multiple of 16.
  std::int64_t columns = 16;
  std::int64_t channels = 0, outputs = 0;
  /// Offset and strides of the element (output, channel, row, column) in the source.
  std::int64_t base = 0, by_output = 0, by_channel = 0, by_row = 0, by_column = 0;

  std::int64_t blocks() const { return (outputs + columns - 1) / columns; }
  Dims dims() const;
};

/// Computes G w Gᵀ in double precision, in the packed layout that the nests read.
void transform_weights(const WinogradWeights& weights, const float* source, float* target);

}  // namespace tenon::nests
