#include "ir/scaled_elements.h"

#include "base/error.h"
#include "ir/element_access.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::inline ir {
namespace {

constexpr std::int64_t kChunk = 512;

bool is_scalable(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t missing = to.size() - from.size();
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] != 1 && from[k] != to[missing + k]) return false;
  }
  return true;
}

/// Replaces underflow to zero by the least number of its sign: 0 times infinity would be NaN.
template <class T>
T held(T made, T element, double factor, T least) {
  return made == 0 && element != 0 && factor != 0 ? std::copysign(least, made) : made;
}

/// Scales types with native arithmetic.
template <class T>
void scale_run(const T* from, T* to, std::int64_t count, const double* factors, bool has_row) {
  constexpr T least = std::numeric_limits<T>::denorm_min();
  if (!has_row) {
    const double factor = *factors;
    for (std::int64_t k = 0; k < count; ++k) {
      to[k] = held(static_cast<T>(static_cast<double>(from[k]) * factor), from[k], factor, least);
    }
    return;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    to[k] =
        held(static_cast<T>(static_cast<double>(from[k]) * factors[k]), from[k], factors[k], least);
  }
}

/// Scales types stored as bits (f16, bf16), widened chunk by chunk.
void scale_narrow_run(DType dtype, const std::byte* from, std::byte* to, std::int64_t count,
                      const double* factors, bool has_row) {
  const double least = dtype == DType::F16 ? 0x1p-24 : 0x1p-133;
  const auto step = static_cast<std::int64_t>(info(dtype).storage_bytes);
  double values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const auto length = static_cast<std::size_t>(std::min(kChunk, count - first));
    elements::load_reals(dtype, from + first * step, {values, length});
    for (std::size_t k = 0; k < length; ++k) {
      const double factor = has_row ? factors[first + static_cast<std::int64_t>(k)] : *factors;
      const double product = values[k] * factor;
      // Half the least number rounds to even, which is zero.
      const bool is_lost = std::abs(product) <= least / 2 && values[k] != 0 && factor != 0;
      values[k] = is_lost ? std::copysign(least, product) : product;
    }
    elements::store_reals(dtype, std::span(values, length), to + first * step);
  }
}

template <class T>
void scale_all(const std::byte* from, std::byte* to, const Shape& shape, const Tensor& factors) {
  const double* table = factors.as<double>().data();
  for_each_scaled_run(
      shape, factors.shape(),
      [&](std::int64_t first, std::int64_t count, std::int64_t factor, bool has_row) {
        scale_run(reinterpret_cast<const T*>(from) + first, reinterpret_cast<T*>(to) + first, count,
                  table + factor, has_row);
      });
}

}  // namespace

void require_scalable(const Constant& base, const Tensor& factors) {
  TENON_ASSERT(base.kind() != Constant::Kind::Scaled, "what is scaled is not scaled already");
  if (!is_scalable(base.dtype())) {
    throw Error("a constant of this type cannot be scaled")
        .expected("f16, bf16, f32 or f64")
        .got(base.dtype());
  }
  if (factors.dtype() != DType::F64 || !broadcasts_to(factors.shape(), base.shape())) {
    throw Error("the factors of a constant do not fit its type")
        .expected("f64 of a shape that broadcasts to that of ", base.type())
        .got(factors.type());
  }
}

std::vector<ScaledAxis> scaled_axes(const Shape& shape, const Shape& factors) {
  if (std::ranges::find(shape, 0) != shape.end()) return {{0, false}};
  std::vector<ScaledAxis> axes;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 1) continue;
    const std::size_t missing = shape.size() - factors.size();
    const bool has_factors = k >= missing && factors[k - missing] != 1;
    if (!axes.empty() && axes.back().has_factors == has_factors) {
      axes.back().extent *= shape[k];
    } else {
      axes.push_back({shape[k], has_factors});
    }
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

Tensor scaled_elements(const Constant& base, const Tensor& factors) {
  const bool is_stored = base.kind() == Constant::Kind::Dense;
  Tensor result = is_stored ? Tensor(base.dtype(), base.shape()) : base.materialise();
  std::byte* to = result.mutable_bytes().data();
  const std::byte* from = is_stored ? base.stored().bytes().data() : to;
  if (base.dtype() == DType::F32) {
    scale_all<float>(from, to, base.shape(), factors);
  } else if (base.dtype() == DType::F64) {
    scale_all<double>(from, to, base.shape(), factors);
  } else {
    const auto step = static_cast<std::int64_t>(info(base.dtype()).storage_bytes);
    for_each_scaled_run(
        base.shape(), factors.shape(),
        [&](std::int64_t first, std::int64_t count, std::int64_t factor, bool has_row) {
          scale_narrow_run(base.dtype(), from + first * step, to + first * step, count,
                           factors.as<double>().data() + factor, has_row);
        });
  }
  return result;
}

}  // namespace tenon::inline ir
