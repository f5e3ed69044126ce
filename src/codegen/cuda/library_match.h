#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"
#include "program/library_call.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A contraction as a library call, or the reason for a refusal.
struct LibraryMatch {
  LibraryCall call;
  std::vector<Dim> extents;
  /// Buffers of the nest in the call's operand order.
  std::vector<std::size_t> buffers;
  /// Packing of the weights; `buffer` is an index in the nest.
  std::optional<nests::Packing> packing;
  /// Reason for the refusal; empty for a match.
  std::string refusal;
  /// A matrix product over many small batches.
  bool is_split = false;
  /// For a refusal: the contraction would be a convolution, or a faster one, if this load read a
  /// copy with its axes in this order and, unless 0, channels zero-padded to this count.
  Scalar image;
  std::vector<std::size_t> image_order;
  std::int64_t image_channels = 0;
  /// For a refusal: the contraction would match if the result were written with its loops in this
  /// order.
  std::vector<const Statement*> result_order;
  /// Channels of that result with padding, unless 0; whether one of the loops runs over channels.
  std::int64_t result_channels = 0;
  bool has_channel_loop = true;
};

/// Matches a batched matrix product over any axes.
LibraryMatch match_matmul(const LoopNest& nest, const nests::Contraction& contraction);
/// Treatment of an image's channels: leave as they are, a zero-padded copy may be requested, or the
/// image is already padded.
enum class ChannelPadding { Unpadded, Paddable, Padded };

/// Element types to accept: those that libraries support, or any, for Tenon's own kernels.
enum class Numbers { Floats, Any };

/// Matches a convolution of channels-last images. `is_constant` is indexed by buffer of the nest.
LibraryMatch match_convolution(const LoopNest& nest, const nests::Contraction& contraction,
                               const std::vector<bool>& is_constant, ChannelPadding padding,
                               Numbers numbers = Numbers::Floats);

/// Matches the gradient of such a convolution by its image, or by its weights.
LibraryMatch match_data_gradient(const LoopNest& nest, const nests::Contraction& contraction);
LibraryMatch match_weight_gradient(const LoopNest& nest, const nests::Contraction& contraction,
                                   ChannelPadding padding);

}  // namespace tenon::codegen::cuda
