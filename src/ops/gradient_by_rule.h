#pragma once

#include "tenon/builder.h"

#include <string>
#include <string_view>

namespace tenon {

/// Appends the gradient of `op`, which has one operand and no attributes, from its own rule: of
/// `dy`, which flows into its result `y`, by its operand `x`. Either of x and y may be unknown (an
/// invalid Var): y is computed where the rule reads it, and where it reads an unknown x that is an
/// Error. The last node's result is called `name`.
Var gradient_by_rule(Builder& build, std::string_view op, Var x, Var y, Var dy,
                     std::string_view name = "");

}  // namespace tenon
