#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/winograd_weights.h"
#include "target/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cpu {

using nests::Contraction;
using nests::WinogradWeights;

/// A 3×3 convolution of stride 1, recognized in a nest; window elements may be dilated.
struct WindowContraction {
  Contraction sum;
  /// The load of the image.
  Scalar image;
  /// Loops.
  std::optional<std::size_t> batch;
  /// Loops of the result.
  std::size_t row = 0, column = 0;
  std::size_t output = 0, channel = 0;
  std::size_t window_row = 0, window_column = 0;
  /// Extents of the result.
  Dim batches = 1, rows = 0, columns = 0;
  /// Position of the first window in the image.
  std::int64_t first_row = 0, first_column = 0;
  Dim image_rows = 0, image_columns = 0;
  /// Dilation. Pixels at that distance form an independent image: one phase per offset, each with
  /// its own tiles.
  std::int64_t row_step = 1, column_step = 1;
  /// Windows traversed in reverse, as in the data gradient of a convolution.
  bool flips_rows = false, flips_columns = false;
  /// Otherwise weights are transformed in every run.
  bool has_constant_weights = true;
  WinogradWeights weights;

  std::int64_t edge() const { return weights.tile + 2; }
  /// Along rows or columns: number of phases, tiles per phase, and tiles in total.
  static std::int64_t phases(const Dim& extent, std::int64_t step);
  Dim phase_tiles(const Dim& extent, std::int64_t step) const;
  Dim tile_rows() const { return Dim(phases(rows, row_step)) * phase_tiles(rows, row_step); }
  Dim tile_columns() const {
    return Dim(phases(columns, column_step)) * phase_tiles(columns, column_step);
  }
  Dim tiles() const { return batches * tile_rows() * tile_columns(); }
  bool has_fixed_images() const { return rows.is_constant() && columns.is_constant(); }
  /// Minimum count if the batch is symbolic, with size hints for image extents.
  std::int64_t tiles_hint() const;
  std::int64_t batches_hint() const { return batches.is_constant() ? batches.constant() : 1; }
  /// Outputs, rounded up to whole vectors.
  std::int64_t blocked_outputs() const;
};

/// Match result for Winograd's minimal filtering: a 3×3 convolution of stride 1, channels last;
/// otherwise the reason of the refusal.
struct FoundWindow {
  std::optional<WindowContraction> window;
  std::string refusal;
};
FoundWindow find_window(const NestSequence::NestCall& part, const std::vector<bool>& is_constant);

/// Estimated cycles on one core, for tiles of `weights.tile`.
double winograd_cost(const WindowContraction& window, const TargetFacts& facts);

/// Returns the column width of the GEMM tiles, the innermost extent of the packed weights.
std::int64_t winograd_columns(const WindowContraction& window, const TargetFacts& facts);

/// Returns the number of tiles per fused block: few enough for a core's own cache, and enough to
/// amortize reading the weights. 0 if too few blocks would remain for the threads.
std::int64_t tiles_in_block(const WindowContraction& window);

/// Builds a nest that transforms the weights into `made` in the layout of the GEMMs:
/// `transform_weights` in f32.
NestSequence::NestCall weight_nest(const NestSequence& sequence, const std::string& name,
                                   const WinogradWeights& weights, std::size_t made);

/// Builds the nests that replace `part`. With `block` > 0, blocks of tiles run through input
/// transform, GEMMs and output transform in one nest with thread-local scratch; 0: three separate
/// nests with all tiles in between. `derived` is the buffer of transformed weights.
std::vector<NestSequence::NestCall> winograd_nests(NestSequence& sequence,
                                                   const NestSequence::NestCall& part,
                                                   const WindowContraction& window,
                                                   std::size_t derived, std::int64_t block,
                                                   const TargetFacts& facts);

/// Arithmetic of the transforms.
inline Scalar add(const Scalar& a, const Scalar& b) {
  return binary_scalar(BinaryOp::Add, DType::F32, a, b);
}
inline Scalar subtract(const Scalar& a, const Scalar& b) {
  return binary_scalar(BinaryOp::Subtract, DType::F32, a, b);
}
inline Scalar scale(double factor, const Scalar& a) {
  return binary_scalar(BinaryOp::Multiply, DType::F32, literal_scalar(DType::F32, factor, 0), a);
}

}  // namespace tenon::codegen::cpu
