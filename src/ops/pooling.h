#pragma once

#include "ops/layout_access.h"
#include "ops/lowering.h"
#include "ops/window.h"

#include <string_view>
#include <vector>

namespace tenon {

struct PoolAttrs : WindowAttrs {
  std::vector<std::int64_t> kernel_shape;
  bool ceil_mode = false;
};

template <class Attrs>
std::vector<AttrField<Attrs>> with_pool_fields(std::vector<AttrField<Attrs>> fields = {}) {
  fields.push_back({"kernel_shape",
                    static_cast<std::vector<std::int64_t> Attrs::*>(&Attrs::kernel_shape),
                    required});
  fields.push_back({"ceil_mode", static_cast<bool Attrs::*>(&Attrs::ceil_mode)});
  return with_window_fields(std::move(fields));
}

/// What pooling relates: an image x (N, C, spatial) and one value for each window and channel, y.
/// Dims are logical.
struct Pooling {
  AxisMap x, y;
  Dims x_dims, y_dims;
  std::vector<Window> windows;
};
Pooling pooling_of(std::string_view op, const PoolAttrs& attrs, const TensorType& x);
/// The same from the type of y; `input_shape` has the spatial extents of x, whose layout is that of
/// y unless `out_layout` says otherwise.
Pooling pooling_under(std::string_view op, const PoolAttrs& attrs, const Dims& input_shape,
                      const TensorType& y);
TensorType pooled_type(std::string_view op, const PoolAttrs& attrs, const TensorType& x);

/// The attributes of a pooling op over the same windows.
Attributes pool_attributes(const Pooling& pooling, const PoolAttrs& attrs,
                           const Layout& out_layout);

/// Loops over the axes of x or y, then over a window, and what they index.
struct PoolLoops {
  PoolLoops(const AxisMap& result, const Dims& result_dims, const Dims& result_parts,
            const Dims& window_extents);
  Space space;
  LogicalIndex n, c;
  /// in the result, for each spatial axis
  std::vector<LogicalIndex> places;
  /// in the window, likewise
  std::vector<Expr> steps;
  Axes window_axes;
};

/// The elements of each window along new last axes; `fill` in the padding.
Expr window_elements(const Pooling& pooling, const Expr& x, double fill);
/// Folds the window's axes of `window_elements` away.
Expr fold_windows(const Pooling& pooling, Reduction reduction, const Expr& elements);
/// For every element of x the sum of `y` over the windows that hold it.
Expr spread_windows(const Pooling& pooling, const Expr& y);
/// How many elements each window counts, in a shape that broadcasts against y: those of x, or with
/// `include_pads` also the padding (but nothing beyond it).
Expr window_sizes(const Pooling& pooling, DType dtype, bool include_pads);
/// The position of each window's first greatest element among the spatial positions of x.
Expr positions_of_greatest(const Pooling& pooling, const Expr& x);
/// The number of each window's first greatest element among the window's own, row-major, i32.
Expr elements_of_greatest(const Pooling& pooling, const Expr& x);
/// For every element of x the sum of `y` over the windows whose element `greatest` it is.
Expr spread_greatest(const Pooling& pooling, const Expr& greatest, const Expr& y);
/// Row-major positions over `extents` as a coordinate for each axis.
std::vector<Expr> unflattened(const Expr& positions, const Dims& extents);

}  // namespace tenon
