#pragma once

#include "ir/tensor.h"
#include "ir/type.h"

namespace tenon {

/// A tensor that lies in some layout in the order that it has without one: batch and channels first
/// (N, C, D, H, W; of weights O, I), blocked axes put together. What has no layout, or one of
/// letters that are none of these, stays.
Tensor in_plain_order(const Tensor& tensor, const Layout& layout);

}  // namespace tenon
