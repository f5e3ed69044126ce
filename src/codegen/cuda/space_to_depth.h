#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cuda {

/// A convolution of an image of few channels, or its gradient by the weights, as one of many
/// channels: positions that a window passes at one step of its stride become channels
/// (space-to-depth), or, where it does not stride, all positions of the window (im2col). Libraries
/// are slow with few channels, tensor cores idle. Of floats, or of bytes with any number around.
struct SpaceToDepth {
  /// of the image, then of the weights if it reads them
  std::vector<NestSequence::Part> copies;
  NestSequence::Part sum;
  /// of a gradient: what becomes of the sum
  std::optional<NestSequence::Part> rest;
  /// Weights that are read laid out anew: the buffers of the sequence from which and to which; how,
  /// for those that are constants.
  std::optional<std::size_t> weights, laid_weights;
  nests::Packing packing;
};

/// Adds buffers to the sequence. Nothing where the sum is no such convolution.
std::optional<SpaceToDepth> space_to_depth(NestSequence& sequence, const NestSequence::Part& part,
                                           const nests::Contraction& sum);

}  // namespace tenon::codegen::cuda
