#pragma once

#include "ops/layout_access.h"
#include "ops/window.h"

#include <vector>

namespace tenon {

/// Windows seen from their input: which positions cover a coordinate, with which of the window's
/// elements. An axis with a stride is looped over by phase, coordinate = stride * q + phase: the
/// elements that meet a phase lie a stride apart, so that no coordinate needs a division. Where the
/// room before the input leaves a remainder by the stride, which element comes first would need
/// one, except by a stride of 2: then coordinate = stride * q + phase - begin, of which a few lie
/// outside.
class PhaseDecomposition {
 public:
  explicit PhaseDecomposition(std::vector<Window> windows) : windows_(std::move(windows)) {}

  /// For each spatial axis: the extent to loop over, which is the input's or a little more; the
  /// parts that this loop is split into, 1 for none; and how many elements to step over.
  Dims loop_extents() const;
  Dims phase_counts() const;
  Dims step_counts() const;

  struct Taps {
    /// of windows; may lie outside
    std::vector<LogicalIndex> positions;
    /// of the window; may lie outside
    std::vector<Expr> elements;
    /// undefined where every coordinate is hit
    Expr is_hit;
  };
  Taps taps(const std::vector<LogicalIndex>& coordinates, const std::vector<Expr>& steps) const;
  /// `weights` at coordinates of which some are elements of the window, zero outside of it.
  Expr read_elements(const Expr& weights, std::vector<Expr> coordinates) const;
  /// `value`, or zero where no window hits or what hits is no element of it.
  Expr where_covered(const Taps& taps, const Expr& value) const;
  /// What was looped over (N, C, `loop_extents`), cut to the input's dims.
  Expr cropped(const Expr& looped, const AxisMap& map, const Dims& input_dims) const;

 private:
  std::vector<Window> windows_;
};

/// `value`, or zero where the condition is defined and false.
Expr where_true(const Expr& condition, const Expr& value);

}  // namespace tenon
