#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <memory>
#include <string>

namespace tenon::inline ir {

/// Value of a constant: dense elements, a splat of one element, a seeded random fill, or one of
/// these times a few scale factors. Random fills and scaled elements are generated on demand, so
/// that a network with 100 MB of seeded weights is a few lines of text.
class Constant {
 public:
  enum class Kind : std::uint8_t { Dense, Splat, Normal, Uniform, Scaled };

  Constant() = default;
  Constant(Tensor dense);  // NOLINT: a tensor is a constant
  /// Every element equals the one element of `scalar`.
  static Constant splat(Tensor scalar, Shape shape);
  /// Normal distribution (mean, deviation), rounded to the dtype; identical on every machine.
  static Constant normal(DType dtype, Shape shape, std::uint64_t seed, double mean,
                         double deviation);
  /// Uniform distribution over [low, high] (integers inclusive).
  static Constant uniform(DType dtype, Shape shape, std::uint64_t seed, double low, double high);
  /// Elements of `base` times f64 factors that broadcast to its shape. `base` is f16, bf16, f32 or
  /// f64 and not scaled itself; other constants are refused. Each product is rounded once; a
  /// nonzero product that would round to zero becomes the least number of its sign.
  static Constant scaled(Constant base, Tensor factors);

  Kind kind() const { return kind_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorType type() const;
  std::int64_t size() const { return checked_element_count(shape_); }
  std::uint64_t seed() const { return seed_; }
  /// Mean of Normal, lower bound of Uniform.
  double first() const { return first_; }
  /// Deviation of Normal, upper bound of Uniform.
  double second() const { return second_; }
  /// The stored elements: all of them for Dense, one for Splat. Requires one of these kinds.
  const Tensor& stored() const;
  /// The constant that the factors scale; the constant itself unless Scaled.
  const Constant& base() const;
  /// Requires Scaled.
  const Tensor& factors() const;
  /// Returns the elements; generates them for all kinds but Dense.
  Tensor materialise() const;

 private:
  struct Scaling;

  Kind kind_ = Kind::Dense;
  DType dtype_ = DType::F32;
  Shape shape_;
  // Copies of a graph share weights.
  std::shared_ptr<const Tensor> stored_;  // a Scaling if Scaled
  std::uint64_t seed_ = 0;
  double first_ = 0, second_ = 0;
};

bool identical(const Constant& a, const Constant& b);

}  // namespace tenon::inline ir
