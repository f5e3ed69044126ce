#pragma once

#include "codegen/cuda/select.h"
#include "nests/contraction.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// The gradient of a convolution by its weights as one kernel computes it on tensor cores: for each
/// piece of the batch's rows the sum over its positions, for all windows at once. Loops of the
/// nest; images are f32 with their channels last.
struct WeightGradientTile {
  /// Pieces: groups of images, bands of rows. Null before a sum is cut.
  const Statement *groups = nullptr, *bands = nullptr;
  /// summed over
  const Statement *images = nullptr, *lines = nullptr, *along = nullptr;
  const Statement *outputs = nullptr, *rows = nullptr, *columns = nullptr, *channels = nullptr;
  /// loads
  Scalar image, gradient;
  /// zeros before the image
  std::int64_t rows_before = 0, columns_before = 0;
  /// buffer of the sums of pieces
  std::size_t result = 0;
};

/// Cuts the sum of a gradient that this kernel is for: the first part sums pieces, the second adds
/// them up and does what followed. Nothing where the nest is anything else or the target has no
/// such instructions. May add a buffer to the sequence.
std::optional<std::vector<NestSequence::Part>> split_weight_gradient(NestSequence& sequence,
                                                                     const NestSequence::Part& part,
                                                                     const nests::Contraction& sum,
                                                                     const Target& target);

/// Of a nest that `split_weight_gradient` made.
std::optional<WeightGradientTile> match_weight_gradient_tile(const LoopNest& nest,
                                                             const Target& target);

/// What is summed over at once: columns of a row, or whole rows of several images side by side.
struct GradientStrip {
  /// 8 to 64
  std::int64_t columns = 0;
  std::int64_t images = 1;
  /// columns from one image to the next, unless it is one
  std::int64_t pitch = 0;

  /// Of a row of the image, and of the result's gradient, that one copy fetches.
  std::int64_t image_columns() const { return images == 1 ? columns : pitch; }
  std::int64_t gradient_columns(std::int64_t window) const {
    return images == 1 ? columns + window - 1 : pitch;
  }
};
/// Of all strips what leaves the fewest columns idle.
GradientStrip strip_of(const WeightGradientTile& tile);
/// Pieces, each for 64 outputs, 64 channels and a part of the window.
Dim unit_count(const WeightGradientTile& tile);

/// One group of 128 threads turns images, and one sums for each column of a part of the window.
inline constexpr unsigned kWeightGradientThreads = 512;
std::uint32_t weight_gradient_shared_bytes(const WeightGradientTile& tile);

/// CUDA C++ that such kernels call.
std::string_view weight_gradient_template();

}  // namespace tenon::codegen::cuda
