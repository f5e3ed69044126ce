#pragma once

#include "codegen/cuda/space_to_depth.h"

namespace tenon::codegen::cuda {

/// Windows that im2col may copy: windows that do not overlap (stride = window, as in the patch
/// embedding of a vision transformer), of which each element is copied once, or also small windows
/// over few channels, as in the first layer of a convolutional network.
enum class Overlap { None, FewChannels };

/// Rewrites a convolution of such windows to a GEMM, with any symbolic extents of the image (im2col
/// into memory). Adds buffers to the sequence. Returns nullopt if the contraction is no such
/// convolution, or its weights are not constant.
std::optional<SpaceToDepth> patches_as_rows(NestSequence& sequence,
                                            const NestSequence::NestCall& part,
                                            const nests::Contraction& contraction,
                                            const std::vector<bool>& is_constant, Overlap overlap);

}  // namespace tenon::codegen::cuda
