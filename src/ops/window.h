#pragma once

#include "ops/attr_field.h"
#include "ops/expr.h"
#include "ops/layout_access.h"

#include <string_view>
#include <vector>

namespace tenon {

/// How pads follow from extents: so that a window starts at every stride-th position, with the odd
/// pad at the end (SameUpper) or the beginning (SameLower); or none at all (Valid).
enum class AutoPad : std::uint8_t { None, SameUpper, SameLower, Valid };

/// The attributes of ops that slide a window over spatial axes. Lists have an entry for each axis;
/// empty ones stand for ones (strides, dilations) or zeros (pads: all beginnings, then all ends).
struct WindowAttrs {
  std::vector<std::int64_t> strides, dilations;
  Dims pads;
  AutoPad auto_pad = AutoPad::None;
  std::string out_layout;
};

/// Whether an op has these attributes.
inline bool takes_windows(const OpDef& op) { return op.find_attr("strides") != nullptr; }

/// One spatial axis: position `p` of the window covers `p*stride + k*dilation - begin` of the
/// input, for k below `kernel`.
struct Window {
  /// of the input
  Dim extent;
  Dim kernel;
  std::int64_t stride = 1, dilation = 1;
  /// pads
  Dim begin = 0, end = 0;
  /// positions
  Dim count;

  Dim reach() const { return Dim(dilation) * (kernel - Dim(1)) + Dim(1); }
};

/// Strides and dilations with their defaults and pads as given; extents and counts are not set.
/// Throws an Error that starts with `op` for lists of the wrong length or steps below one.
std::vector<Window> plain_windows(std::string_view op, const WindowAttrs& attrs,
                                  const Dims& kernel);
/// The windows over `extents` with pads and counts resolved. With `ceil_mode` a last window may
/// hang over the end, as long as it starts inside the input or the padding before it.
std::vector<Window> resolve_windows(std::string_view op, const WindowAttrs& attrs,
                                    const Dims& extents, const Dims& kernel,
                                    bool ceil_mode = false);
/// Pads that add up to `total`, the odd one where `auto_pad` says.
void split_padding(Window& window, const Dim& total, AutoPad auto_pad);

/// The input's coordinate that offset `k` of the window at position `p` covers.
Expr input_position(const Window& window, const Expr& p, const Expr& k);
/// `x` at coordinates inside its windows, with `fill` in the padding.
Expr read_padded(const Expr& x, const std::vector<Window>& windows, std::vector<Expr> coordinates,
                 double fill);

/// The fields of WindowAttrs, for the `attrs` of an op whose Attrs derive from it.
template <class Attrs>
std::vector<AttrField<Attrs>> with_window_fields(std::vector<AttrField<Attrs>> fields = {}) {
  // A member of the base is named as one of Attrs, which deduction would not do.
  fields.push_back({"strides", static_cast<std::vector<std::int64_t> Attrs::*>(&Attrs::strides)});
  fields.push_back(
      {"dilations", static_cast<std::vector<std::int64_t> Attrs::*>(&Attrs::dilations)});
  fields.push_back({"pads", static_cast<Dims Attrs::*>(&Attrs::pads)});
  fields.push_back({"auto_pad", static_cast<AutoPad Attrs::*>(&Attrs::auto_pad),
                    words("none same_upper same_lower valid")});
  fields.push_back({"out_layout", static_cast<std::string Attrs::*>(&Attrs::out_layout)});
  return fields;
}

/// all beginnings, then all ends
Dims pads_of(const std::vector<Window>& windows);
/// The fields of WindowAttrs as attributes for a node of another windowed op, pads and strides as
/// `windows` has them.
Attributes window_attributes(const std::vector<Window>& windows, const Layout& out_layout);

}  // namespace tenon
