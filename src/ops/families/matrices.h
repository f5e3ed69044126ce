#pragma once

#include "ir/tensor.h"
#include "tenon/builder.h"

#include <string_view>

namespace tenon::inline ops {

/// Transposes the matrices in the last two axes.
Var with_last_axes_swapped(Builder& build, Var matrices);

/// Returns the size of the square matrices in the last two axes. Throws Error if they are not
/// square.
std::int64_t square_size(std::string_view op, const Tensor& matrices);

}  // namespace tenon::inline ops
