#pragma once

#include "expr/expr.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::inline expr {

/// Position along a logical axis. If two nested loops iterate over it (`whole = outer *
/// inner_extent + inner`), both indices are kept, so that reading a tensor with the same blocking
/// needs no division.
struct LogicalIndex {
  LogicalIndex(Expr index) : whole(std::move(index)) {}  // NOLINT: an index is a position
  LogicalIndex(Expr outer_index, Expr inner_index, Dim extent);
  Expr whole, outer, inner;
  Dim inner_extent = 1;
};

/// Loops over a logical axis: one, or two if it is split.
struct AxisLoops {
  std::size_t outer = 0;
  std::optional<std::size_t> inner;
  Dim inner_extent = 1;
  LogicalIndex index(const Space& space) const;
};

/// Mapping from the logical axes of an image (N, C, spatial) or a weight (O, I, spatial) to the
/// axes of a tensor in memory. Spatial axes are in the order D, H, W whatever their order in
/// memory. Without a layout, memory order is logical order.
class AxisMap {
 public:
  /// `leading` names the axes before the spatial ones. Throws an Error that starts with `op` if the
  /// layout lacks one of them or its rank differs from the tensor's.
  AxisMap(std::string_view op, const TensorType& type, std::string_view leading);
  /// For a tensor without a type yet: `rank` counts logical axes.
  AxisMap(std::string_view op, const Layout& layout, std::size_t rank, std::string_view leading);

  std::size_t rank() const { return places_.size(); }
  Dims logical_dims(const Dims& physical) const;
  /// Throws an Error if a block does not divide its axis.
  Dims physical_dims(std::string_view op, const Dims& logical) const;
  /// Returns one coordinate per memory axis from one index per logical axis.
  std::vector<Expr> coordinates(const std::vector<LogicalIndex>& indices) const;
  /// Reshapes `values`, which run along one logical axis, to broadcast against the tensor.
  Expr along(std::size_t logical_axis, const Expr& values) const;
  /// Returns the memory axes that do not belong to a logical axis.
  std::vector<std::int64_t> axes_without(std::size_t logical_axis) const;
  std::int64_t block(std::size_t logical_axis) const { return places_[logical_axis].block; }

  /// Appends loops over the tensor's axes in memory order to `dims`. An unblocked logical axis gets
  /// two loops if its `inner_extents` exceeds 1.
  std::vector<AxisLoops> loops(Dims& dims, const Dims& logical,
                               const Dims& inner_extents = {}) const;

 private:
  struct AxisPosition {
    std::size_t axis = 0;
    std::optional<std::size_t> inner;  // memory axis of the position within a block
    std::int64_t block = 1;
  };
  std::vector<AxisPosition> places_;
  std::size_t physical_rank_ = 0;
};

/// Resolves an op's `out_layout`: the operand's layout if it is empty.
Layout chosen_layout(const std::string& out_layout, const Layout& otherwise);
/// Returns the `out_layout` that produces the layout of `wanted` from an operand of layout `from`.
/// The default layout must be named if the operand has another.
Layout layout_to_ask(const TensorType& wanted, const Layout& from, std::string_view leading);

}  // namespace tenon::inline expr
