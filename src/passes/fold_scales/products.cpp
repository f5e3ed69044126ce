#include "passes/fold_scales/products.h"

#include "ir/element_access.h"
#include "ir/scaled_elements.h"
#include "passes/fold_scales/magnitudes.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::scales {
namespace {

// Below this size, multiplying costs less than storing factors.
constexpr std::int64_t kFewElements = 1 << 14;
// A factor takes twice the bytes of a weight, and factors must not outweigh the weights.
constexpr std::int64_t kLeastElementsPerFactor = 8;
constexpr std::int64_t kChunk = 512;

// Returns the factors as a tensor that broadcasts to that shape.
Tensor broadcast_factors(const ChannelFactors& factors, const Shape& shape) {
  Shape extents(shape.size(), 1);
  extents[factors.axis] = shape[factors.axis];
  if (factors.second) extents[*factors.second] = shape[*factors.second];
  Tensor tensor(DType::F64, std::move(extents));
  const std::span<double> table = tensor.as_mutable<double>();
  if (!factors.second || factors.axis < *factors.second) {
    std::ranges::copy(factors.table, table.begin());
    return tensor;
  }
  const auto rows = static_cast<std::size_t>(shape[factors.axis]);
  const auto columns = static_cast<std::size_t>(shape[*factors.second]);
  for (std::size_t a = 0; a < rows; ++a) {
    for (std::size_t b = 0; b < columns; ++b) table[b * rows + a] = factors.table[a * columns + b];
  }
  return tensor;
}

// Multiplies the factors of a scaled constant by new factors.
Tensor combined(const Tensor& first, const Tensor& second) {
  Shape shape = second.shape();
  const std::size_t missing = shape.size() - first.shape().size();
  for (std::size_t k = missing; k < shape.size(); ++k) {
    shape[k] = std::max(shape[k], first.shape()[k - missing]);
  }
  Tensor ones(DType::F64, shape);
  std::ranges::fill(ones.as_mutable<double>(), 1.0);
  return scaled_elements(Constant(scaled_elements(Constant(std::move(ones)), first)), second);
}

// Returns whether a product overflows its type or underflows to zero. A product slightly below the
// smallest number rounds to it, with an error below one rounding.
bool is_lost(double product, bool is_zero, const MagnitudeLimits& limits) {
  const double size = std::abs(product);
  return !(size <= limits.greatest) || (!is_zero && size < limits.least / 4);
}

bool every_product_fits(const Constant& base, const Tensor& factors) {
  const Tensor stored = base.materialise();
  const DType dtype = base.dtype();
  const MagnitudeLimits limits = limits_of(dtype);
  const std::byte* data = stored.bytes().data();
  const auto step = static_cast<std::int64_t>(info(dtype).storage_bytes);
  const double* table = factors.as<double>().data();
  bool fits = true;
  for_each_scaled_run(
      base.shape(), factors.shape(),
      [&](std::int64_t first, std::int64_t count, std::int64_t factor, bool has_row) {
        double values[kChunk];
        for (std::int64_t at = 0; at < count; at += kChunk) {
          const auto length = static_cast<std::size_t>(std::min(kChunk, count - at));
          elements::load_reals(dtype, data + (first + at) * step, {values, length});
          for (std::size_t k = 0; k < length; ++k) {
            const double by = table[factor + (has_row ? at + static_cast<std::int64_t>(k) : 0)];
            fits = fits && !is_lost(values[k] * by, values[k] == 0 || by == 0, limits);
          }
        }
      });
  return fits;
}

// Bounds suffice without checking each element: the largest products and the smallest products fit.
bool all_products_fit(const Constant& base, const Tensor& factors) {
  const MagnitudeLimits limits = limits_of(base.dtype());
  const std::optional<Magnitudes> elements = magnitudes_of(base);
  const std::optional<Magnitudes> by = magnitudes_of(Constant(factors));
  return elements && by && elements->greatest * by->greatest <= limits.greatest &&
         elements->least * by->least >= limits.least;
}

}  // namespace

std::optional<Constant> scaled(const Constant& constant, const ChannelFactors& factors) {
  if (constant.size() == 0) return constant;
  const Constant& base = constant.base();
  Tensor table = broadcast_factors(factors, constant.shape());
  if (constant.kind() == Constant::Kind::Scaled) table = combined(constant.factors(), table);
  const bool is_large =
      constant.size() >= kFewElements && constant.size() >= table.size() * kLeastElementsPerFactor;
  const bool fits = (is_large && all_products_fit(base, table)) || every_product_fits(base, table);
  if (!fits) return {};
  Constant product = Constant::scaled(base, std::move(table));
  return is_large ? product : Constant(product.materialise());
}

}  // namespace tenon::passes::scales
