#pragma once

#include <string>

namespace tenon::inline program {

/// A call of a vendor library in place of a kernel's code, as data: the runtime loads the library
/// and selects the function. Buffers of its call: `a`, `b`, bias and residual if present, result.
///
/// product      y[i] = alpha a[i] b[i] + residual[i] + bias, then ReLU if `is_rectified`; row-major
///              with leading dimensions.
///              Extents: batch, m, n, k, then for a, b, y, residual: leading dimension and batch
///              stride in elements.
/// convolution  channels-last images, weights as output, row, column, channel.
///              Extents: batch, rows, columns, channels, outputs, window rows, window columns,
///              result rows, result columns, padding before and after of rows and of columns,
///              strides, dilations, groups.
/// data-gradient, weight-gradient   of such a convolution. Buffers: output gradient, weights, image
///              gradient; or image, output gradient, weight gradient.
struct LibraryCall {
  enum class Kind { Matmul, Convolution, DataGradient, WeightGradient };
  Kind kind = Kind::Matmul;
  /// Element type of a and b.
  std::string dtype = "f32";
  /// Element type of bias, residual and result.
  std::string result_dtype = "f32";
  /// Products of f32 may use tf32.
  bool allows_tf32 = false;
  bool is_a_transposed = false, is_b_transposed = false;
  bool has_bias = false, has_residual = false;
  /// Applies ReLU to the result.
  bool is_rectified = false;
  double alpha = 1;

  bool operator==(const LibraryCall&) const = default;
};

/// Text form: "product dtype=f16 …". Parsing throws Error for other texts.
std::string to_string(const LibraryCall& call);
LibraryCall parse_library_call(const std::string& text);

/// Number of extents in a call of this kind.
std::size_t extent_count(LibraryCall::Kind kind);

}  // namespace tenon::inline program
