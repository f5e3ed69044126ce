#pragma once

#include "tenon/builder.h"

namespace tenon::frontends::onnx {

/// A tensor quantized to bytes with scale and zero point from its own range.
struct DynamicBytes {
  Var values, scale, zero_point;
};
DynamicBytes dynamically_quantized(Var x);

/// Bytes with a scale and an optional zero point, for the whole matrix or for each column.
struct QuantizedWeights {
  Var values, scale, zero_point;
};
/// Multiplies x, quantized by its own range, with a matrix [K, N] of bytes; returns floats.
Var dynamic_product(Var x, const QuantizedWeights& weights);

/// Returns the i32 product of bytes without their zero points, which may be invalid, as floats.
Var integer_product(Var a, Var a_zero_point, Var b, Var b_zero_point);

}  // namespace tenon::frontends::onnx
