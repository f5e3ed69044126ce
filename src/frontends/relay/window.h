#pragma once

#include "frontends/relay/import_call.h"

#include <string>
#include <string_view>

namespace tenon::relay {

/// How many spatial axes an operator works on, by the digit in its name: 2 for "nn.conv2d".
std::size_t spatial_count(std::string_view op);
/// "DHW", "HW", "W"
std::string spatial_letters(std::size_t count);

/// One number for each axis, where the text may give one for all.
Integers along_each_axis(const CallImport& call, std::string_view attribute, std::size_t count);
/// Begins, then ends, from `padding`: one number for all, one for each axis, or both sides of each.
Integers pads_around(const CallImport& call, std::size_t count);

/// The value as a convolution with this bias, if it is the result of one that has none, nothing
/// else reads it and the bias runs along its channels; else an invalid Var.
Var with_bias(Builder& builder, Var value, Var bias, std::int64_t axis);

}  // namespace tenon::relay
