#pragma once

#include <string>

namespace tenon {

/// A function of a vendor's library that stands in place of a kernel's code, as data: the runtime
/// finds the library and what in it computes this. Buffers of its call: `a`, `b`, bias and residual
/// where it has them, result.
///
/// product      y[i] = alpha a[i] b[i] + residual[i] + bias, rectified or not; row-major with
/// leading dimensions.
///              Extents: batch, m, n, k, then of a, b, y, residual: leading dimension and elements
///              from one to the next.
/// convolution  images with channels last, weights as output, row, column, channel.
///              Extents: batch, rows, columns, channels, outputs, window rows, window columns,
///              result rows, result columns, padding before and behind of rows and of columns,
///              strides, dilations, groups.
/// data-gradient, weight-gradient   of such a convolution: buffers are the result's gradient, the
///              weights and the image's gradient; or the image, the result's gradient and that of
///              the weights.
struct LibraryCall {
  enum class Kind { Matmul, Convolution, DataGradient, WeightGradient };
  Kind kind = Kind::Matmul;
  /// of a and b
  std::string dtype = "f32";
  /// of bias, residual and result
  std::string result_dtype = "f32";
  /// f32 products may drop digits
  bool allows_tf32 = false;
  bool is_a_transposed = false, is_b_transposed = false;
  bool has_bias = false, has_residual = false;
  /// numbers below zero become zero
  bool is_rectified = false;
  double alpha = 1;

  bool operator==(const LibraryCall&) const = default;
};

/// "product dtype=f16 …"; throws Error for text that says nothing of the kind.
std::string to_string(const LibraryCall& call);
LibraryCall parse_library_call(const std::string& text);

/// How many extents a call of the kind has.
std::size_t extent_count(LibraryCall::Kind kind);

}  // namespace tenon
