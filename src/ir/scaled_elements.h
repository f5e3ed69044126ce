#pragma once

#include "ir/constant.h"

#include <vector>

namespace tenon::inline ir {

/// Throws Error for operands that `Constant::scaled` refuses.
void require_scalable(const Constant& base, const Tensor& factors);

/// Returns the elements of `base` times the broadcast factors, as `Constant::scaled` specifies.
Tensor scaled_elements(const Constant& base, const Tensor& factors);

/// Axes of a tensor, with neighbours collapsed if the factors vary along both or neither. Has at
/// least one axis, of one element for a scalar.
struct ScaledAxis {
  std::int64_t extent = 1;
  bool has_factors = false;
};
std::vector<ScaledAxis> scaled_axes(const Shape& shape, const Shape& factors);

/// Calls `use(first, count, factor, has_row)` for consecutive runs of elements. If `has_row`,
/// element `first + k` has the factor at index `factor + k`; otherwise all have the factor at
/// `factor`.
template <class Use>
void for_each_scaled_run(const Shape& shape, const Shape& factors, Use use) {
  const std::vector<ScaledAxis> axes = scaled_axes(shape, factors);
  std::int64_t run_count = 1;
  for (const ScaledAxis& axis : axes) run_count *= axis.extent;
  if (run_count == 0) return;
  const ScaledAxis last = axes.back();
  run_count /= last.extent;
  std::vector<std::int64_t> index(axes.size() - 1, 0);
  for (std::int64_t run = 0; run < run_count; ++run) {
    std::int64_t factor = 0;
    for (std::size_t k = 0; k < index.size(); ++k) {
      if (axes[k].has_factors) factor = factor * axes[k].extent + index[k];
    }
    if (last.has_factors) factor *= last.extent;
    use(run * last.extent, last.extent, factor, last.has_factors);
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < axes[k].extent) break;
      index[k] = 0;
    }
  }
}

}  // namespace tenon::inline ir
