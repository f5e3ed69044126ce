#pragma once

#include "ops/definition/gradient.h"

#include <string_view>

namespace tenon::inline ops {

/// Automatic differentiation of an op without a gradient rule: adds one `derived_gradient` node per
/// floating operand, whose expression is the reverse-mode derivative of the op's lowering. `result`
/// is any of the node's results. Correct for any op with a `lower` over reals; a hand-written rule
/// may be faster. With `by`, only that operand is differentiated: the others are positions, with
/// zero gradient.
void add_derived_gradient(Gradient& op, std::string_view result, std::string_view by = "");

/// The derived gradient in rule form: `.gradient = derived_gradient<Attrs>`, for ops whose result
/// is named y.
template <class Attrs>
void derived_gradient(const Attrs&, Gradient& op) {
  add_derived_gradient(op, "y");
}

}  // namespace tenon::inline ops
