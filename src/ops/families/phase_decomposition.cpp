#include "ops/families/phase_decomposition.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

bool has_phases(const Window& window) {
  // A query without an assumption: the alternative needs no phases.
  return window.stride > 1 && window.dilation == 1 && provably_at_most(0, window.begin);
}

// Returns whether the phases start at the input's first coordinate instead of at the padding.
bool starts_inside(const Window& window) {
  return window.begin.is_constant() &&
         (window.stride == 2 || window.begin.constant() % window.stride == 0);
}

// Returns whether the last step of some phase lies past the window.
bool steps_beyond(const Window& window) {
  return has_phases(window) && !(mod(window.kernel, window.stride) == Dim(0));
}

Expr both(const Expr& a, const Expr& b) { return a.is_defined() ? a && b : b; }

}  // namespace

Dims PhaseDecomposition::loop_extents() const {
  Dims extents;
  for (const Window& window : windows_) {
    const Dim stride = window.stride;
    const Dim looped = starts_inside(window) ? window.extent : window.extent + window.begin;
    extents.push_back(has_phases(window) ? ceil_div(looped, stride) * stride : window.extent);
  }
  return extents;
}

Dims PhaseDecomposition::phase_counts() const {
  Dims counts;
  for (const Window& window : windows_) counts.push_back(has_phases(window) ? window.stride : 1);
  return counts;
}

Dims PhaseDecomposition::step_counts() const {
  Dims counts;
  for (const Window& window : windows_) {
    counts.push_back(has_phases(window) ? ceil_div(window.kernel, window.stride) : window.kernel);
  }
  return counts;
}

PhaseDecomposition::Taps PhaseDecomposition::taps(const std::vector<LogicalIndex>& coordinates,
                                                  const std::vector<Expr>& steps) const {
  Taps taps;
  for (std::size_t axis = 0; axis < windows_.size(); ++axis) {
    const Window& window = windows_[axis];
    const LogicalIndex& coordinate = coordinates[axis];
    const Dim stride = window.stride;
    if (has_phases(window)) {
      TENON_ASSERT(coordinate.inner_extent == stride, "an axis with a stride is looped by phase");
      Expr position = coordinate.outer - steps[axis], first = coordinate.inner;
      if (starts_inside(window)) {
        // With a stride of 2, an odd start swaps the phases: (phase + 1) / 2 and its remainder.
        const bool swaps = window.begin.constant() % window.stride != 0;
        position = position + Dim(window.begin.constant() / window.stride);
        if (swaps) position = position + coordinate.inner;
        if (swaps) first = coordinate.inner * Dim(-1) + Dim(1);
      }
      taps.positions.emplace_back(position);
      taps.elements.push_back(first + steps[axis] * stride);
      continue;
    }
    taps.elements.push_back(steps[axis]);
    const Expr start = coordinate.whole - steps[axis] * Dim(window.dilation) + window.begin;
    taps.positions.emplace_back(window.stride == 1 ? start : floor_div(start, stride));
    if (window.stride > 1) taps.is_hit = both(taps.is_hit, equal(mod(start, stride), Dim(0)));
  }
  return taps;
}

Expr PhaseDecomposition::read_elements(const Expr& weights, std::vector<Expr> coordinates) const {
  if (std::ranges::none_of(windows_, steps_beyond)) return weights.at(std::move(coordinates));
  return weights.at_or(std::move(coordinates), 0);
}

Expr PhaseDecomposition::where_covered(const Taps& taps, const Expr& value) const {
  Expr condition = taps.is_hit;
  for (std::size_t axis = 0; axis < windows_.size(); ++axis) {
    const Window& window = windows_[axis];
    if (!steps_beyond(window)) continue;
    condition = both(condition, taps.elements[axis] < window.kernel);
  }
  return where_true(condition, value);
}

Expr PhaseDecomposition::cropped(const Expr& looped, const AxisMap& map,
                                 const Dims& input_dims) const {
  const auto is_cut = [](const Window& window) {
    return has_phases(window) &&
           !(starts_inside(window) && mod(window.extent, window.stride) == Dim(0));
  };
  if (std::ranges::none_of(windows_, is_cut)) return looped;
  Dims dims;
  const std::vector<AxisLoops> loops = map.loops(dims, input_dims);
  const Space space(std::move(dims));
  std::vector<LogicalIndex> at;
  for (const AxisLoops& loop : loops) at.push_back(loop.index(space));
  for (std::size_t axis = 0; axis < windows_.size(); ++axis) {
    const Window& window = windows_[axis];
    if (has_phases(window) && !starts_inside(window))
      at[2 + axis] = at[2 + axis].whole + window.begin;
  }
  return looped.at(map.coordinates(at));
}

Expr where_true(const Expr& condition, const Expr& value) {
  return condition.is_defined() ? select(condition, value, 0.0) : value;
}

}  // namespace tenon::inline ops
