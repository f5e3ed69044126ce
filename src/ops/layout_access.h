#pragma once

#include "ops/expr.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon {

/// A position along a logical axis. Where the loops run over it in two parts
/// (`whole = outer * inner_extent + inner`) the parts are kept, so that reading a tensor which is
/// split alike needs no division.
struct LogicalIndex {
  LogicalIndex(Expr index) : whole(std::move(index)) {}  // NOLINT: an index is a position
  LogicalIndex(Expr outer_index, Expr inner_index, Dim extent);
  Expr whole, outer, inner;
  Dim inner_extent = 1;
};

/// The loops over a logical axis: one, or two where it is split.
struct AxisLoops {
  std::size_t outer = 0;
  std::optional<std::size_t> inner;
  Dim inner_extent = 1;
  LogicalIndex index(const Space& space) const;
};

/// Where the logical axes of an image (N, C, spatial) or a weight (O, I, spatial) lie in a tensor.
/// Spatial axes count in the order D, H, W whatever their order in memory. Without a layout the
/// axes lie in logical order.
class AxisMap {
 public:
  /// `leading` names the axes before the spatial ones. Throws an Error that starts with `op` if the
  /// layout lacks one of them or has a rank other than the tensor's.
  AxisMap(std::string_view op, const TensorType& type, std::string_view leading);
  /// Of a tensor to be: `rank` counts logical axes.
  AxisMap(std::string_view op, const Layout& layout, std::size_t rank, std::string_view leading);

  std::size_t rank() const { return places_.size(); }
  Dims logical_dims(const Dims& physical) const;
  /// Throws an Error if a blocked axis does not divide into its blocks.
  Dims physical_dims(std::string_view op, const Dims& logical) const;
  /// One coordinate for each axis in memory from one index for each logical axis.
  std::vector<Expr> coordinates(const std::vector<LogicalIndex>& indices) const;
  /// `values`, which run along one logical axis, in a shape that broadcasts against the tensor.
  Expr along(std::size_t logical_axis, const Expr& values) const;
  /// The axes in memory that hold nothing of a logical axis.
  std::vector<std::int64_t> axes_without(std::size_t logical_axis) const;
  std::int64_t block(std::size_t logical_axis) const { return places_[logical_axis].block; }

  /// Appends loops over the tensor's axes, in the order of memory, to `dims`. A logical axis that
  /// is not blocked is looped over in two parts where `inner_extents` says more than 1.
  std::vector<AxisLoops> loops(Dims& dims, const Dims& logical,
                               const Dims& inner_extents = {}) const;

 private:
  struct Place {
    std::size_t axis = 0;
    std::optional<std::size_t> inner;  // holds the position within a block
    std::int64_t block = 1;
  };
  std::vector<Place> places_;
  std::size_t physical_rank_ = 0;
};

/// The layout named by an op's `out_layout`: that of the operand where nothing is asked for.
Layout chosen_layout(const std::string& out_layout, const Layout& otherwise);
/// What `out_layout` must ask for to give a tensor like `wanted` from an operand of layout `from`:
/// the default one has to be named where the operand has another.
Layout layout_to_ask(const TensorType& wanted, const Layout& from, std::string_view leading);

}  // namespace tenon
