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

/// A convolution of 3×3 windows that move by one, found in a nest; their elements may lie apart.
struct WindowSum {
  Contraction sum;
  /// the load
  Scalar image;
  /// loops
  std::optional<std::size_t> batch;
  /// of the result: loops
  std::size_t row = 0, column = 0;
  std::size_t output = 0, channel = 0;
  std::size_t window_row = 0, window_column = 0;
  /// extents of the result
  Dim batches = 1, rows = 0, columns = 0;
  /// of the image: where the first window begins
  std::int64_t first_row = 0, first_column = 0;
  Dim image_rows = 0, image_columns = 0;
  /// Between the elements of a window. Pixels that lie so far apart are an image by themselves, of
  /// which there are as many as steps: one phase each, with its own tiles.
  std::int64_t row_step = 1, column_step = 1;
  /// Windows that are read from their last element on, as a convolution's gradient reads them.
  bool flips_rows = false, flips_columns = false;
  /// else they are transformed in every run
  bool has_constant_weights = true;
  WinogradWeights weights;

  std::int64_t edge() const { return weights.tile + 2; }
  /// Along rows or columns: phases, tiles of one phase, and tiles of all.
  static std::int64_t phases(const Dim& extent, std::int64_t step);
  Dim phase_tiles(const Dim& extent, std::int64_t step) const;
  Dim tile_rows() const { return Dim(phases(rows, row_step)) * phase_tiles(rows, row_step); }
  Dim tile_columns() const {
    return Dim(phases(columns, column_step)) * phase_tiles(columns, column_step);
  }
  Dim tiles() const { return batches * tile_rows() * tile_columns(); }
  bool has_fixed_images() const { return rows.is_constant() && columns.is_constant(); }
  /// As many as there are at least where the batch is known only when it runs, and as many as
  /// images usually have.
  std::int64_t tiles_hint() const;
  std::int64_t batches_hint() const { return batches.is_constant() ? batches.constant() : 1; }
  /// outputs, rounded up to whole vectors
  std::int64_t blocked_outputs() const;
};

/// A sum that Winograd's algorithm computes: windows of 3×3 that move by one, image and result with
/// their channels last; or why it is none.
struct FoundWindow {
  std::optional<WindowSum> window;
  std::string refusal;
};
FoundWindow find_window(const NestSequence::Part& part, const std::vector<bool>& is_constant);

/// Estimated time, in cycles of one core, by tiles of `weights.tile`.
double winograd_cost(const WindowSum& window, const TargetFacts& facts);

/// Columns of a tile of products, which lie side by side in the weights.
std::int64_t winograd_columns(const WindowSum& window, const TargetFacts& facts);

/// Tiles that go through all steps together: few enough to stay in the cache of a core, enough of
/// them for each time that the weights are read. 0 where that leaves too few blocks to share out.
std::int64_t tiles_in_block(const WindowSum& window);

/// A nest that writes the weights to `made` as the products want them: `transform_weights` in f32.
NestSequence::Part weight_nest(const NestSequence& sequence, const std::string& name,
                               const WinogradWeights& weights, std::size_t made);

/// Nests that compute what `part` does. `block` tiles at a time go through transform, products and
/// transform back within one nest, in buffers of the thread; 0: three nests after one another, with
/// all tiles in between. `derived` is the buffer of transformed weights.
std::vector<NestSequence::Part> winograd_nests(NestSequence& sequence,
                                               const NestSequence::Part& part,
                                               const WindowSum& window, std::size_t derived,
                                               std::int64_t block, const TargetFacts& facts);

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
