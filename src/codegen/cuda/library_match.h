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
  std::vector<std::size_t> buffers;       ///< of the nest, in the order of the call's
  std::optional<nests::Packing> packing;  ///< of the weights; `buffer` is one of the nest
  std::string refusal;                    ///< why there is none; empty where there is
  /// Of a refusal: what would be a convolution if this load read a copy with its axes in this
  /// order.
  Scalar image;
  std::vector<std::size_t> image_order;
};

/// A batched matrix product, whatever the axes it comes from.
LibraryMatch match_matmul(const LoopNest& nest, const nests::Contraction& sum);
/// A convolution of images with their channels last. `is_constant`: by buffer of the nest.
LibraryMatch match_convolution(const LoopNest& nest, const nests::Contraction& sum,
                               const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cuda
