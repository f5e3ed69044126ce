#pragma once

#include "expr/layout_access.h"
#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/families/window.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Attributes of convolution and of its adjoint ops.
struct ConvolutionAttrs : WindowAttrs {
  std::int64_t groups = 1;
};

template <class Attrs>
std::vector<AttrField<Attrs>> with_convolution_fields(std::vector<AttrField<Attrs>> fields = {}) {
  fields.push_back({"groups", static_cast<std::int64_t Attrs::*>(&Attrs::groups)});
  return with_window_fields(std::move(fields));
}

/// Geometry of y = conv(x, w), whichever of the three is the result: images x (N, C, spatial) and y
/// (N, O, spatial), weights w (O, C / groups, spatial). Dims are logical.
struct Convolution {
  AxisMap x, w, y;
  Dims x_dims, w_dims, y_dims;
  std::vector<Window> windows;
  std::int64_t groups = 1;

  Dim inputs_per_group() const { return w_dims[1]; }
  Dim outputs_per_group() const { return floor_div(w_dims[0], groups); }
};

/// Each throws an Error that starts with `op` if the operands do not fit.
void require_groups(std::string_view op, std::int64_t groups, const Dim& outputs);
void require_extent(std::string_view op, std::string_view what, const Dim& got,
                    const Dim& expected);
/// Requires that `b`, if present, has one element per channel.
void require_bias(std::string_view op, const OperandTypes& in, const Dim& channels);

/// Returns the sum that defines each of the three from the other two, in the physical shape of the
/// result. Products are computed in `dtype`; x is padded with `pad_value`.
Expr convolve(const Convolution& conv, const Expr& x, const Expr& w, DType dtype,
              double pad_value = 0);
Expr convolve_transposed(const Convolution& conv, const Expr& y, const Expr& w);
Expr correlate_for_weights(const Convolution& conv, const Expr& x, const Expr& y);
/// Returns `y` plus the bias if the op has one.
Expr add_bias(const Lowering& op, const AxisMap& map, const Expr& y);

/// Returns the dims after the two leading logical axes.
Dims spatial_dims(const Dims& logical);
/// Returns the attributes of a convolution op over these windows.
Attributes convolution_attributes(const Convolution& conv, const Layout& out_layout);
/// Returns the attributes of the conv_transpose that restores the shape of x.
Attributes transposed_attributes(const Convolution& conv, const Layout& out_layout);
/// Returns the windows of the convolution from these extents to exactly these counts: the end pads
/// absorb the remainder of the stride.
std::vector<Window> exact_windows(std::vector<Window> windows);
Var call_op(Builder& build, std::string_view op, const std::vector<Var>& operands,
            Attributes attrs);
/// Adds the bias gradient: the upstream gradient summed over all axes but the channels.
void add_bias_gradient(Gradient& op, const AxisMap& map, Var upstream);

}  // namespace tenon::inline ops
