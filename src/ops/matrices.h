#pragma once

#include "ir/tensor.h"
#include "tenon/builder.h"

#include <string_view>

namespace tenon {

/// Matrices in the last two axes, transposed.
Var with_last_axes_swapped(Builder& build, Var matrices);

/// The rows of the square matrices in the last two axes. Throws Error where they are not square.
std::int64_t square_size(std::string_view op, const Tensor& matrices);

}  // namespace tenon
