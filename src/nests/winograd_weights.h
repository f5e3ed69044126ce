#pragma once

#include "nests/nest_builder.h"

#include <vector>

namespace tenon::nests {

/// The weights of a convolution of 3×3 windows, to be multiplied with transformed tiles of the
/// image.
struct WinogradWeights {
  /// the weights themselves, among the sequence's buffers
  std::size_t source = 0;
  /// results along the edge of a tile: 2 or 4
  int tile = 4;
  /// outputs that lie side by side: a multiple of 16
  std::int64_t columns = 16;
  std::int64_t channels = 0, outputs = 0;
  /// Where in the source the number for (output, channel, row, column) stands.
  std::int64_t base = 0, by_output = 0, by_channel = 0, by_row = 0, by_column = 0;

  std::int64_t blocks() const { return (outputs + columns - 1) / columns; }
  Dims dims() const;
};

/// Writes G w Gᵀ, computed in double precision, in the order in which the nests read it.
void transform_weights(const WinogradWeights& weights, const float* source, float* target);

}  // namespace tenon::nests
