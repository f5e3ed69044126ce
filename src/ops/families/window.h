#pragma once

#include "expr/expr.h"
#include "expr/layout_access.h"
#include "ops/definition/attr_field.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Automatic padding: a window starts at every stride-th position, with the odd pad at the end
/// (SameUpper) or the beginning (SameLower); or no padding (Valid).
enum class AutoPad : std::uint8_t { None, SameUpper, SameLower, Valid };

/// Attributes of ops with sliding windows over spatial axes. Lists have an entry per axis; empty
/// ones mean ones (strides, dilations) or zeros (pads: all begins, then all ends).
struct WindowAttrs {
  std::vector<std::int64_t> strides, dilations;
  Dims pads;
  AutoPad auto_pad = AutoPad::None;
  std::string out_layout;
};

/// Returns whether an op has these attributes.
inline bool takes_windows(const OpDef& op) { return op.find_attr("strides") != nullptr; }

/// Window along one spatial axis: position `p` covers `p*stride + k*dilation - begin` of the input,
/// for k below `kernel`.
struct Window {
  /// Extent of the input.
  Dim extent;
  Dim kernel;
  std::int64_t stride = 1, dilation = 1;
  /// Pads.
  Dim begin = 0, end = 0;
  /// Number of window positions.
  Dim count;

  Dim reach() const { return Dim(dilation) * (kernel - Dim(1)) + Dim(1); }
};

/// Returns strides and dilations with their defaults and pads as given, without extents and counts.
/// Throws an Error that starts with `op` for lists of the wrong length or steps below one.
std::vector<Window> plain_windows(std::string_view op, const WindowAttrs& attrs,
                                  const Dims& kernel);
/// Returns the windows over `extents` with resolved pads and counts. With `ceil_mode`, the last
/// window may extend past the end if it starts inside the input or the padding before it.
std::vector<Window> resolve_windows(std::string_view op, const WindowAttrs& attrs,
                                    const Dims& extents, const Dims& kernel,
                                    bool ceil_mode = false);
/// Splits `total` into begin and end pads; `auto_pad` decides the side of the odd one.
void split_padding(Window& window, const Dim& total, AutoPad auto_pad);

/// Returns the input coordinate that offset `k` of the window at position `p` covers.
Expr input_position(const Window& window, const Expr& p, const Expr& k);
/// Reads `x` at coordinates inside its windows, with `fill` in the padding.
Expr read_padded(const Expr& x, const std::vector<Window>& windows, std::vector<Expr> coordinates,
                 double fill);

/// Fields of WindowAttrs, for the `attrs` of an op whose Attrs derive from it.
template <class Attrs>
std::vector<AttrField<Attrs>> with_window_fields(std::vector<AttrField<Attrs>> fields = {}) {
  // The casts name a base member as a member of Attrs, which template deduction would not do.
  fields.push_back({"strides", static_cast<std::vector<std::int64_t> Attrs::*>(&Attrs::strides)});
  fields.push_back(
      {"dilations", static_cast<std::vector<std::int64_t> Attrs::*>(&Attrs::dilations)});
  fields.push_back({"pads", static_cast<Dims Attrs::*>(&Attrs::pads)});
  fields.push_back({"auto_pad", static_cast<AutoPad Attrs::*>(&Attrs::auto_pad),
                    words("none same_upper same_lower valid")});
  fields.push_back({"out_layout", static_cast<std::string Attrs::*>(&Attrs::out_layout)});
  return fields;
}

/// Returns all begins, then all ends.
Dims pads_of(const std::vector<Window>& windows);
/// Returns the fields of WindowAttrs as attributes of another windowed op, with pads and strides of
/// `windows`.
Attributes window_attributes(const std::vector<Window>& windows, const Layout& out_layout);

}  // namespace tenon::inline ops
