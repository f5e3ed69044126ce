#include "nests/winograd_weights.h"

#include <algorithm>
#include <array>

namespace tenon::nests {
namespace {

constexpr std::int64_t kAtOnce = 16;

// One number per output, for adjacent outputs.
using Numbers = std::array<double, kAtOnce>;

// G g for one row or column of three weights.
void transform(const std::array<Numbers, 3>& g, std::array<Numbers, 6>& out, int tile) {
  for (std::size_t k = 0; k < kAtOnce; ++k) {
    const double a = g[0][k], b = g[1][k], c = g[2][k];
    if (tile == 2) {
      out[0][k] = a;
      out[1][k] = (a + b + c) / 2;
      out[2][k] = (a - b + c) / 2;
      out[3][k] = c;
    } else {
      out[0][k] = a / 4;
      out[1][k] = (a + b + c) * (-1.0 / 6);
      out[2][k] = (a - b + c) * (-1.0 / 6);
      out[3][k] = (a + 2 * b + 4 * c) * (1.0 / 24);
      out[4][k] = (a - 2 * b + 4 * c) * (1.0 / 24);
      out[5][k] = c;
    }
  }
}

}  // namespace

Dims WinogradWeights::dims() const {
  return {(tile + 2) * (tile + 2), blocks(), channels, columns};
}

void transform_weights(const WinogradWeights& weights, const float* source, float* target) {
  const auto edge = static_cast<std::size_t>(weights.tile) + 2;
  const std::int64_t columns = weights.columns, outputs = weights.blocks() * columns;
  const std::int64_t stride = outputs * weights.channels;  // Between the GEMMs.
  std::array<Numbers, 3> g{};
  std::array<Numbers, 6> out{};
  std::array<std::array<Numbers, 3>, 6> half{};  // By row of the result, column of the window.
  for (std::int64_t first = 0; first < outputs; first += kAtOnce) {
    const std::int64_t count = std::clamp<std::int64_t>(weights.outputs - first, 0, kAtOnce);
    for (Numbers& numbers : g) numbers.fill(0);  // Beyond the last output.
    for (std::int64_t c = 0; c < weights.channels; ++c) {
      const float* w = source + weights.base + first * weights.by_output + c * weights.by_channel;
      for (std::size_t column = 0; column < 3; ++column) {
        for (std::size_t row = 0; row < 3; ++row) {
          const float* from = w + static_cast<std::int64_t>(row) * weights.by_row +
                              static_cast<std::int64_t>(column) * weights.by_column;
          for (std::int64_t k = 0; k < count; ++k) {
            g[row][static_cast<std::size_t>(k)] = from[k * weights.by_output];
          }
        }
        transform(g, out, weights.tile);
        for (std::size_t row = 0; row < edge; ++row) half[row][column] = out[row];
      }
      float* at = target + (first / columns * weights.channels + c) * columns + first % columns;
      for (std::size_t row = 0; row < edge; ++row) {
        transform(half[row], out, weights.tile);
        for (std::size_t column = 0; column < edge; ++column, at += stride) {
          for (std::size_t k = 0; k < kAtOnce; ++k) at[k] = static_cast<float>(out[column][k]);
        }
      }
    }
  }
}

}  // namespace tenon::nests
