#pragma once

#include "codegen/cuda/convolution.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/value_writer.h"
#include "codegen/cuda/weight_gradient.h"

namespace tenon::codegen::cuda {

/// Writes the body of a GEMM kernel: a call of `gemm_template()`, with the epilogue written from
/// the nest.
void write_gemm(const LoopNest& nest, const GemmTile& tile, Lines& lines, ValueWriter& values);

/// Writes the body of a convolution kernel: a call of `convolution_template()` or, for many pixels,
/// of `gemm_template()`.
void write_convolution(const LoopNest& nest, const ConvolutionTile& tile, Lines& lines,
                       ValueWriter& values);

/// Writes the body of a GEMM or convolution kernel on `mma_template()`.
void write_mma(const LoopNest& nest, const MmaTile& tile, Lines& lines, ValueWriter& values);

/// Writes the body of a weight-gradient kernel, which sums pieces with
/// `weight_gradient_template()`.
void write_weight_gradient(const LoopNest& nest, const WeightGradientTile& tile, Lines& lines,
                           ValueWriter& values);

}  // namespace tenon::codegen::cuda
