#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cuda {

/// Rewrites a convolution of an image with few channels, or its weight gradient, to one with many
/// channels: positions within one stride become channels (space-to-depth); with unit stride all
/// positions of the window do (im2col). Libraries are slow with few channels and leave tensor cores
/// idle. Supports floats, and bytes with any padding value.
struct SpaceToDepth {
  /// Nests that copy the image and, if the convolution reads them, the weights.
  std::vector<NestSequence::NestCall> copies;
  NestSequence::NestCall contraction;
  /// For a gradient: the nest that finishes the sum.
  std::optional<NestSequence::NestCall> rest;
  /// Repacked weights: source and target buffer in the sequence, and the packing for constant
  /// weights.
  std::optional<std::size_t> weights, laid_weights;
  nests::Packing packing;
};

/// Adds buffers to the sequence. Returns nullopt if the contraction does not match.
std::optional<SpaceToDepth> space_to_depth(NestSequence& sequence,
                                           const NestSequence::NestCall& part,
                                           const nests::Contraction& contraction);

}  // namespace tenon::codegen::cuda
