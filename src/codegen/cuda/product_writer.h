#pragma once

#include "codegen/cuda/convolution.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/product.h"
#include "codegen/cuda/value_writer.h"
#include "codegen/cuda/weight_gradient.h"

namespace tenon::codegen::cuda {

/// What a kernel does that is a product: its tiles by `product_template()`, with what becomes of a
/// sum written from the nest.
void write_product(const LoopNest& nest, const ProductTile& tile, Lines& lines,
                   ValueWriter& values);

/// … that is a convolution, by `convolution_template()` or, of many pixels, by
/// `product_template()`.
void write_convolution(const LoopNest& nest, const ConvolutionTile& tile, Lines& lines,
                       ValueWriter& values);

/// … that is either of these, by `mma_template()`.
void write_mma(const LoopNest& nest, const MmaTile& tile, Lines& lines, ValueWriter& values);

/// … that sums pieces of a gradient by weights, by `weight_gradient_template()`.
void write_weight_gradient(const LoopNest& nest, const WeightGradientTile& tile, Lines& lines,
                           ValueWriter& values);

}  // namespace tenon::codegen::cuda
