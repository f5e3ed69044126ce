#pragma once

#include "codegen/cuda/select.h"
#include "nests/contraction.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// A weight gradient of a convolution as a tensor-core kernel: for each piece of the batch's rows
/// it sums over positions, for all window taps at once. Loops of the nest; images are channels-last
/// f32.
struct WeightGradientTile {
  /// Loops over pieces: groups of images, bands of rows. Null before the reduction is split.
  const Statement *groups = nullptr, *bands = nullptr;
  /// Reduction loops.
  const Statement *images = nullptr, *lines = nullptr, *along = nullptr;
  const Statement *outputs = nullptr, *rows = nullptr, *columns = nullptr, *channels = nullptr;
  /// Loads of image and output gradient.
  Scalar image, gradient;
  /// Zero padding before the image.
  std::int64_t rows_before = 0, columns_before = 0;
  /// Buffer of the partial sums.
  std::size_t result = 0;
};

/// Splits the reduction of a weight gradient that this kernel supports: the first part sums pieces,
/// the second adds the partial sums and applies the epilogue. Returns nullopt if the nest does not
/// match or the target lacks wgmma. May add a buffer to the sequence.
std::optional<std::vector<NestSequence::NestCall>> split_weight_gradient(
    NestSequence& sequence, const NestSequence::NestCall& part,
    const nests::Contraction& contraction, const CudaTarget& target);

/// Matches a nest that `split_weight_gradient` returned.
std::optional<WeightGradientTile> match_weight_gradient_tile(const LoopNest& nest,
                                                             const CudaTarget& target);

/// One strip of the reduction: columns of a row, or whole rows of several images side by side.
struct GradientStrip {
  /// Multiple of 8, up to 64.
  std::int64_t columns = 0;
  std::int64_t images = 1;
  /// Columns from one image to the next, if there are several.
  std::int64_t pitch = 0;

  /// Columns of the image, and of the output gradient, that one copy fetches.
  std::int64_t image_columns() const { return images == 1 ? columns : pitch; }
  std::int64_t gradient_columns(std::int64_t window) const {
    return images == 1 ? columns + window - 1 : pitch;
  }
};
/// Returns the strip with the fewest idle columns.
GradientStrip strip_of(const WeightGradientTile& tile);
/// Number of units: pieces times tiles of 64 outputs and 64 channels times parts of the window.
Dim unit_count(const WeightGradientTile& tile);

/// One warpgroup transposes images; one warpgroup accumulates for each column of a window part.
inline constexpr unsigned kWeightGradientThreads = 512;
std::uint32_t weight_gradient_shared_bytes(const WeightGradientTile& tile);

/// CUDA C++ functions that weight-gradient kernels call.
std::string_view weight_gradient_template();

}  // namespace tenon::codegen::cuda
