#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"
#include "program/library_call.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A sum of products as a library computes it.
struct LibraryMatch {
  LibraryCall call;
  std::vector<Dim> extents;
  /// of the nest, in the order of the call's
  std::vector<std::size_t> buffers;
  /// of the weights; `buffer` is one of the nest
  std::optional<nests::Packing> packing;
  /// why there is none; empty where there is
  std::string refusal;
  /// a matrix product in many small ones
  bool is_split = false;
  /// Of a refusal: what would be a convolution, or a faster one, if this load read a copy with its
  /// axes in this order and, unless 0, zeros up to so many channels.
  Scalar image;
  std::vector<std::size_t> image_order;
  std::int64_t image_channels = 0;
  /// Of a refusal: what would do if the result were written with its loops in this order.
  std::vector<const Statement*> result_order;
  /// … with room for so many channels behind them, unless 0; whether one of the loops is theirs.
  std::int64_t result_channels = 0;
  bool has_channel_loop = true;
};

/// A batched matrix product, whatever the axes it comes from.
LibraryMatch match_matmul(const LoopNest& nest, const nests::Contraction& sum);
/// What is known about an image's channels: that they stay as they are, that a copy with more of
/// them, the others zero, may be asked for, or that there is one.
enum class Channels { AsTheyAre, MayBePadded, ArePadded };

/// Those that libraries take, or others too, for a kernel of our own.
enum class Numbers { Floats, Any };

/// A convolution of images with their channels last. `is_constant`: by buffer of the nest.
LibraryMatch match_convolution(const LoopNest& nest, const nests::Contraction& sum,
                               const std::vector<bool>& is_constant, Channels padding,
                               Numbers numbers = Numbers::Floats);

/// The gradient of such a convolution by its image, and by its weights.
LibraryMatch match_data_gradient(const LoopNest& nest, const nests::Contraction& sum);
LibraryMatch match_weight_gradient(const LoopNest& nest, const nests::Contraction& sum,
                                   Channels padding);

}  // namespace tenon::codegen::cuda
