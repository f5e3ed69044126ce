#pragma once

#include "ops/gradient.h"

#include <string_view>

namespace tenon {

/// The gradient of an op that says nothing of it, found from what it computes: a node
/// `derived_gradient` for each floating operand, whose expression is the op's own walked backwards.
/// `result` is any of the node's results. Right for any op with a `lower` over reals; a rule
/// written by hand may well be faster. With `by`, only that operand: the others decide where things
/// lie, by steps.
void add_derived_gradient(Gradient& op, std::string_view result, std::string_view by = "");

/// The same as a rule: `.gradient = derived_gradient<Attrs>`, for ops whose result is called y.
template <class Attrs>
void derived_gradient(const Attrs&, Gradient& op) {
  add_derived_gradient(op, "y");
}

}  // namespace tenon
