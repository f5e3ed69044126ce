#pragma once

#include "expr/layout_access.h"
#include "ops/families/window.h"

#include <vector>

namespace tenon::inline ops {

/// Sub-pixel (phase) decomposition of strided windows, seen from their input: the window positions
/// that cover a coordinate, and the window elements that they cover it with. An axis with a stride
/// is looped over by phase, coordinate = stride * q + phase: the elements of a phase are a stride
/// apart, so that coordinates need no division. If the padding is not a multiple of the stride, the
/// first element would need one, except with a stride of 2: then coordinate = stride * q + phase -
/// begin, of which a few lie outside.
class PhaseDecomposition {
 public:
  explicit PhaseDecomposition(std::vector<Window> windows) : windows_(std::move(windows)) {}

  /// Per spatial axis: the loop extent, which is the input's or slightly more; the number of phases
  /// that split this loop, 1 for none; and the number of window elements to step over.
  Dims loop_extents() const;
  Dims phase_counts() const;
  Dims step_counts() const;

  struct Taps {
    /// Window positions; may lie outside.
    std::vector<LogicalIndex> positions;
    /// Elements of the window; may lie outside.
    std::vector<Expr> elements;
    /// Undefined if every coordinate is covered.
    Expr is_hit;
  };
  Taps taps(const std::vector<LogicalIndex>& coordinates, const std::vector<Expr>& steps) const;
  /// Reads `weights` at coordinates of the window; zero outside of it.
  Expr read_elements(const Expr& weights, std::vector<Expr> coordinates) const;
  /// Returns `value`, or zero if the coordinate is not covered by an element of a window.
  Expr where_covered(const Taps& taps, const Expr& value) const;
  /// Crops the loop space (N, C, `loop_extents`) to the input's dims.
  Expr cropped(const Expr& looped, const AxisMap& map, const Dims& input_dims) const;

 private:
  std::vector<Window> windows_;
};

/// Returns `value`, or zero if the condition is defined and false.
Expr where_true(const Expr& condition, const Expr& value);

}  // namespace tenon::inline ops
