#pragma once

#include "expr/layout_access.h"
#include "expr/lowering.h"
#include "ops/families/window.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

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

/// Geometry of pooling: an image x (N, C, spatial) and y with one value per window and channel.
/// Dims are logical.
struct Pooling {
  AxisMap x, y;
  Dims x_dims, y_dims;
  std::vector<Window> windows;
};
Pooling pooling_of(std::string_view op, const PoolAttrs& attrs, const TensorType& x);
/// Derives the geometry from the type of y; `input_shape` has the spatial extents of x, whose
/// layout is that of y unless `out_layout` is set.
Pooling pooling_under(std::string_view op, const PoolAttrs& attrs, const Dims& input_shape,
                      const TensorType& y);
TensorType pooled_type(std::string_view op, const PoolAttrs& attrs, const TensorType& x);

/// Returns the attributes of a pooling op over the same windows.
Attributes pool_attributes(const Pooling& pooling, const PoolAttrs& attrs,
                           const Layout& out_layout);

/// Loops over the axes of x or y, then over a window, with their indices.
struct PoolLoops {
  PoolLoops(const AxisMap& result, const Dims& result_dims, const Dims& result_parts,
            const Dims& window_extents);
  Space space;
  LogicalIndex n, c;
  /// Index in the result for each spatial axis.
  std::vector<LogicalIndex> places;
  /// Index in the window for each spatial axis.
  std::vector<Expr> steps;
  Axes window_axes;
};

/// Reads the elements of each window along new last axes; `fill` in the padding.
Expr window_elements(const Pooling& pooling, const Expr& x, double fill);
/// Reduces the window axes of `window_elements`.
Expr fold_windows(const Pooling& pooling, Reduction reduction, const Expr& elements);
/// Sums, for every element of x, `y` over the windows that contain it.
Expr spread_windows(const Pooling& pooling, const Expr& y);
/// Returns the element count of each window, in a shape that broadcasts against y: elements of x,
/// or with `include_pads` also the padding (but not the overhang past it).
Expr window_sizes(const Pooling& pooling, DType dtype, bool include_pads);
/// Returns the position of each window's first maximum among the spatial positions of x.
Expr positions_of_greatest(const Pooling& pooling, const Expr& x);
/// Returns the row-major index of each window's first maximum within the window, i32.
Expr elements_of_greatest(const Pooling& pooling, const Expr& x);
/// Sums, for every element of x, `y` over the windows whose element `greatest` it is.
Expr spread_greatest(const Pooling& pooling, const Expr& greatest, const Expr& y);
/// Converts row-major positions over `extents` to one coordinate per axis.
std::vector<Expr> unflattened(const Expr& positions, const Dims& extents);

}  // namespace tenon::inline ops
