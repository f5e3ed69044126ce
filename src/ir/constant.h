#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <memory>
#include <string>

namespace tenon {

/// The value of a constant: elements, one element repeated, a seeded random fill that is only made
/// when asked for (so a network with 100 MB of stand-in weights is a few lines of text), or one of
/// these times a few factors, likewise made when asked for.
class Constant {
 public:
  enum class Kind : std::uint8_t { Dense, Splat, Normal, Uniform, Scaled };

  Constant() = default;
  Constant(Tensor dense);  // NOLINT: a tensor is a constant
  /// Every element is the one element of `scalar`.
  static Constant splat(Tensor scalar, Shape shape);
  /// Normally distributed (mean, deviation), rounded to the dtype; the same on every machine.
  static Constant normal(DType dtype, Shape shape, std::uint64_t seed, double mean,
                         double deviation);
  /// Uniform in [low, high] (integers inclusive).
  static Constant uniform(DType dtype, Shape shape, std::uint64_t seed, double low, double high);
  /// The elements of a constant that is not scaled itself, of f16, bf16, f32 or f64, times factors
  /// of f64 that broadcast to its shape. Each product is rounded once; one that would round to zero
  /// though neither of the two is zero is the least number of its sign. Refuses others.
  static Constant scaled(Constant base, Tensor factors);

  Kind kind() const { return kind_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorType type() const;
  std::int64_t size() const { return checked_element_count(shape_); }
  std::uint64_t seed() const { return seed_; }
  /// mean or low
  double first() const { return first_; }
  /// deviation or high
  double second() const { return second_; }
  /// The stored elements: all of them for Dense, one for Splat; asks for one of these kinds.
  const Tensor& stored() const;
  /// What the factors scale; the constant itself where there are none.
  const Constant& base() const;
  /// Asks for Scaled.
  const Tensor& factors() const;
  /// The elements; made anew for all kinds but Dense.
  Tensor materialise() const;

 private:
  struct Scaling;

  Kind kind_ = Kind::Dense;
  DType dtype_ = DType::F32;
  Shape shape_;
  // Weights are shared between copies of a graph.
  std::shared_ptr<const Tensor> stored_;  // a Scaling, for Scaled
  std::uint64_t seed_ = 0;
  double first_ = 0, second_ = 0;
};

bool identical(const Constant& a, const Constant& b);

}  // namespace tenon
