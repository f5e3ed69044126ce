#pragma once

#include "ir/type.h"

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline ir {

using Shape = std::vector<std::int64_t>;

/// Elements in memory: dtype, extents, and shared bytes with copy-on-write. Sub-byte types take one
/// byte per element, sign-extended; f16, bf16 and f8 are stored as bits.
class Tensor {
 public:
  Tensor() = default;
  /// Allocates zeros (or empty strings). Refuses shapes whose bytes overflow or exceed
  /// `kMaxExtent`.
  Tensor(DType dtype, Shape shape);
  /// Borrows bytes kept alive by `owner`; copies them only if they are not aligned for the dtype.
  static Tensor borrow(DType dtype, Shape shape, std::shared_ptr<const void> owner,
                       std::span<const std::byte> bytes);
  static Tensor of_strings(Shape shape, std::vector<std::string> strings);
  template <class T>
  static Tensor of(DType dtype, Shape shape, const std::vector<T>& values);
  static Tensor scalar(DType dtype, double value);
  /// Returns an i64[n] tensor.
  static Tensor of_integers(std::span<const std::int64_t> values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  std::int64_t size() const { return size_; }
  TensorType type() const;

  std::span<const std::byte> bytes() const { return {data_, byte_size()}; }
  std::span<std::byte> mutable_bytes();
  std::size_t byte_size() const;
  /// T must be the storage type: float for f32, std::uint16_t for f16, std::int8_t for i4, ….
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(size_)};
  }
  template <class T>
  std::span<T> as_mutable() {
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<std::size_t>(size_)};
  }
  std::span<const std::string> strings() const;
  std::span<std::string> mutable_strings();

  /// One converted element; slow, for shapes, scalars, comparisons and printing.
  double real_at(std::int64_t index) const;
  std::int64_t integer_at(std::int64_t index) const;
  std::complex<double> complex_at(std::int64_t index) const;
  /// Rounds to the dtype (floats to nearest even, integers wrap).
  void set_real(std::int64_t index, double value);
  void set_integer(std::int64_t index, std::int64_t value);
  void set_complex(std::int64_t index, std::complex<double> value);

  /// All elements as integers; for shapes and axes.
  std::vector<std::int64_t> integers() const;
  std::vector<double> reals() const;

  /// Returns the same elements with another shape of the same element count.
  Tensor reshaped(Shape shape) const;
  /// Converts elements with the number rules of ONNX Cast (floats truncate to integers).
  Tensor converted(DType dtype) const;

 private:
  DType dtype_ = DType::F32;
  Shape shape_;
  std::int64_t size_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  bool is_borrowed_ = false;
};

/// Returns the product of the extents. Throws Error for overflow and negative extents.
std::int64_t checked_element_count(std::span<const std::int64_t> shape);

/// Returns whether type, shape and elements are bit-for-bit equal.
bool identical(const Tensor& a, const Tensor& b);

template <class T>
Tensor Tensor::of(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      tensor.set_integer(static_cast<std::int64_t>(i), static_cast<std::int64_t>(values[i]));
    } else {
      tensor.set_real(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    }
  }
  return tensor;
}

}  // namespace tenon::inline ir
