#pragma once

#include "codegen/cuda/window_match.h"
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
  /// For a refusal: copies after which the contraction would match.
  LayoutRequest request;
  /// A matrix product over many small batches.
  bool is_split = false;
  /// A product that loops finish before a library's kernel has started.
  bool is_small = false;
};

/// Matches a batched matrix product over any axes.
LibraryMatch match_matmul(const LoopNest& nest, const nests::Contraction& contraction);

/// Matches a convolution of channels-last images. `is_constant` is indexed by buffer of the nest.
LibraryMatch match_convolution(const LoopNest& nest, const nests::Contraction& contraction,
                               const std::vector<bool>& is_constant, ChannelPadding padding);

/// Matches the gradient of such a convolution by its image, or by its weights.
LibraryMatch match_data_gradient(const LoopNest& nest, const nests::Contraction& contraction);
LibraryMatch match_weight_gradient(const LoopNest& nest, const nests::Contraction& contraction,
                                   ChannelPadding padding);

}  // namespace tenon::codegen::cuda
