#pragma once

#include "ops/gradient.h"
#include "ops/layout_access.h"
#include "ops/lowering.h"
#include "ops/window.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon {

/// The attributes of convolution and of the ops that are its adjoints.
struct ConvolutionAttrs : WindowAttrs {
  std::int64_t groups = 1;
};

template <class Attrs>
std::vector<AttrField<Attrs>> with_convolution_fields(std::vector<AttrField<Attrs>> fields = {}) {
  fields.push_back({"groups", static_cast<std::int64_t Attrs::*>(&Attrs::groups)});
  return with_window_fields(std::move(fields));
}

/// What y = conv(x, w) relates, whichever of the three is the result: images x (N, C, spatial) and
/// y (N, O, spatial), weights w (O, C / groups, spatial). Dims are logical.
struct Convolution {
  AxisMap x, w, y;
  Dims x_dims, w_dims, y_dims;
  std::vector<Window> windows;
  std::int64_t groups = 1;

  Dim inputs_per_group() const { return w_dims[1]; }
  Dim outputs_per_group() const { return floor_div(w_dims[0], groups); }
};

/// Each throws an Error that starts with `op` where the operands do not fit.
void require_groups(std::string_view op, std::int64_t groups, const Dim& outputs);
void require_extent(std::string_view op, std::string_view what, const Dim& got,
                    const Dim& expected);
/// Asks that `b`, where the op has it, holds one number for each of `channels`.
void require_bias(std::string_view op, const OperandTypes& in, const Dim& channels);

/// The sum that defines each of the three from the other two, in the physical shape of the result;
/// products are taken in `dtype`, with `pad_value` around x.
Expr convolve(const Convolution& conv, const Expr& x, const Expr& w, DType dtype,
              double pad_value = 0);
Expr convolve_transposed(const Convolution& conv, const Expr& y, const Expr& w);
Expr correlate_for_weights(const Convolution& conv, const Expr& x, const Expr& y);
/// `y` plus the bias where the op has one.
Expr add_bias(const Lowering& op, const AxisMap& map, const Expr& y);

/// Dims behind the two leading logical axes.
Dims spatial_dims(const Dims& logical);
/// The attributes of a convolution op over these windows.
Attributes convolution_attributes(const Convolution& conv, const Layout& out_layout);
/// Those of the conv_transpose that leads back to the shape of x.
Attributes transposed_attributes(const Convolution& conv, const Layout& out_layout);
/// Windows of the convolution that leads from extents to exactly the counts: end pads absorb what
/// a stride left over.
std::vector<Window> exact_windows(std::vector<Window> windows);
Var call_op(Builder& build, std::string_view op, const std::vector<Var>& operands,
            Attributes attrs);
/// Adds to the gradient by "b": the upstream gradient summed over all but its channels.
void add_bias_gradient(Gradient& op, const AxisMap& map, Var upstream);

}  // namespace tenon
