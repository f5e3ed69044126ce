#include "ops/families/window.h"

#include "base/error.h"
#include "ir/assumptions.h"
#include "ops/definition/operand_limits.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

void require_length(std::string_view op, std::string_view attr, std::size_t length,
                    std::size_t expected) {
  if (length == 0 || length == expected) return;
  throw Error(concat(op, ": attribute '", attr, "' has the wrong length"))
      .expected(expected, " entries for the spatial axes")
      .got(length);
}

void require_positive(std::string_view op, std::string_view attr,
                      const std::vector<std::int64_t>& values) {
  for (std::int64_t value : values) {
    if (value >= 1) continue;
    throw Error(concat(op, ": attribute '", attr, "' must be at least 1")).got(value);
  }
}

Dim ceil_mode_count(const Window& window) {
  const Dim overhanging =
      ceil_div(window.extent + window.begin + window.end - window.reach(), window.stride) + Dim(1);
  const Dim starting_inside = ceil_div(window.extent + window.begin, window.stride);
  return min(overhanging, starting_inside);
}

}  // namespace

std::vector<Window> plain_windows(std::string_view op, const WindowAttrs& attrs,
                                  const Dims& kernel) {
  const std::size_t rank = kernel.size();
  require_length(op, "strides", attrs.strides.size(), rank);
  require_length(op, "dilations", attrs.dilations.size(), rank);
  require_length(op, "pads", attrs.pads.size(), 2 * rank);
  require_positive(op, "strides", attrs.strides);
  require_positive(op, "dilations", attrs.dilations);
  std::vector<Window> windows(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    Window& window = windows[axis];
    require_at_least(op, "an extent of the window", kernel[axis], 1);
    window.kernel = kernel[axis];
    if (!attrs.strides.empty()) window.stride = attrs.strides[axis];
    if (!attrs.dilations.empty()) window.dilation = attrs.dilations[axis];
    if (attrs.pads.empty() || attrs.auto_pad != AutoPad::None) continue;
    window.begin = attrs.pads[axis];
    window.end = attrs.pads[rank + axis];
  }
  return windows;
}

void split_padding(Window& window, const Dim& total, AutoPad auto_pad) {
  const Dim smaller = floor_div(total, 2);
  window.begin = auto_pad == AutoPad::SameUpper ? smaller : total - smaller;
  window.end = total - window.begin;
}

std::vector<Window> resolve_windows(std::string_view op, const WindowAttrs& attrs,
                                    const Dims& extents, const Dims& kernel, bool ceil_mode) {
  const bool is_same = attrs.auto_pad == AutoPad::SameUpper || attrs.auto_pad == AutoPad::SameLower;
  std::vector<Window> windows = plain_windows(op, attrs, kernel);
  if (extents.size() != windows.size()) {
    throw Error(concat(op, ": window and input differ in spatial rank"))
        .expected(extents.size(), " spatial axes")
        .got(windows.size());
  }
  for (std::size_t axis = 0; axis < windows.size(); ++axis) {
    Window& window = windows[axis];
    window.extent = extents[axis];
    const Dim stride = window.stride;
    if (is_same) {
      window.count = ceil_div(window.extent, stride);
      const Dim covered = (window.count - Dim(1)) * stride + window.reach();
      split_padding(window, max(covered - window.extent, 0), attrs.auto_pad);
    } else if (ceil_mode) {
      window.count = ceil_mode_count(window);
    } else {
      const Dim padded = window.extent + window.begin + window.end;
      window.count = floor_div(padded - window.reach(), stride) + Dim(1);
    }
    if (!is_same && !assume_at_most(1, window.count)) {
      throw Error(concat(op, ": the window is larger than the padded input"))
          .expected("a reach of at most ", window.extent + window.begin + window.end)
          .got(window.reach());
    }
  }
  return windows;
}

Expr read_padded(const Expr& x, const std::vector<Window>& windows, std::vector<Expr> coordinates,
                 double fill) {
  const bool stays_inside = std::ranges::all_of(windows, [](const Window& window) {
    const Dim last = (window.count - Dim(1)) * Dim(window.stride) + window.reach() - window.begin;
    // A query without an assumption: coordinates that may lie outside are read with a fill.
    return provably_at_most(window.begin, 0) && provably_at_most(last, window.extent);
  });
  if (stays_inside) return x.at(std::move(coordinates));
  return x.at_or(std::move(coordinates), fill);
}

Expr input_position(const Window& window, const Expr& p, const Expr& k) {
  const Expr start = window.stride == 1 ? p : p * Dim(window.stride);
  const Expr offset = window.dilation == 1 ? k : k * Dim(window.dilation);
  const Expr position = start + offset;
  return window.begin == Dim(0) ? position : position - window.begin;
}

Dims pads_of(const std::vector<Window>& windows) {
  Dims begins, ends;
  for (const Window& window : windows) {
    begins.push_back(window.begin);
    ends.push_back(window.end);
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

Attributes window_attributes(const std::vector<Window>& windows, const Layout& out_layout) {
  Attributes attrs;
  const auto set_unless = [&](std::string_view name, const Dims& values, const Dim& otherwise) {
    const bool is_default =
        std::ranges::all_of(values, [&](const Dim& value) { return value == otherwise; });
    if (!is_default) attrs.set(name, values);
  };
  Dims strides, dilations;
  for (const Window& window : windows) {
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
  }
  set_unless("strides", strides, 1);
  set_unless("dilations", dilations, 1);
  set_unless("pads", pads_of(windows), 0);
  if (!out_layout.is_empty()) attrs.set("out_layout", out_layout.text());
  return attrs;
}

}  // namespace tenon::inline ops
