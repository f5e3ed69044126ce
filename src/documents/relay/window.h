#pragma once

#include "documents/relay/import_call.h"

#include <string>
#include <string_view>

namespace tenon::documents::relay {

/// Returns the number of spatial axes of an operator by the digit in its name: 2 for "nn.conv2d".
std::size_t spatial_count(std::string_view op);
/// "DHW", "HW", "W"
std::string spatial_letters(std::size_t count);

/// Returns one number per axis from a list or a single number.
Integers along_each_axis(const CallImport& call, std::string_view attribute, std::size_t count);
/// Returns begins, then ends, from `padding`: one number for all, one per axis, or both sides of
/// each.
Integers pads_around(const CallImport& call, std::size_t count);

/// Fuses the bias into the convolution that produced the value, if the convolution lacks one, has
/// no other reader, and the bias runs along its channels; else returns an invalid Var.
Var with_bias(Builder& builder, Var value, Var bias, std::int64_t axis);

}  // namespace tenon::documents::relay
