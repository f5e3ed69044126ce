#pragma once

#include "tenon/builder.h"

#include <string>
#include <string_view>

namespace tenon::inline autodiff {

/// Appends the gradient of `op`, which has one operand and no attributes, by its own rule: from the
/// gradient `dy` of its result `y` to its operand `x`. Either of x and y may be unknown (an invalid
/// Var): y is recomputed if the rule reads it, but a rule that reads an unknown x is an Error. The
/// last node's result is named `name`.
Var gradient_by_rule(Builder& build, std::string_view op, Var x, Var y, Var dy,
                     std::string_view name = "");

}  // namespace tenon::inline autodiff
