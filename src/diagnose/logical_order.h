#pragma once

#include "ir/tensor.h"
#include "ir/type.h"

namespace tenon::diagnose {

/// Returns a tensor converted from a layout to logical order: batch and channels first (N, C, D, H,
/// W; for weights O, I), with blocked axes merged. A tensor without a layout, or with other
/// letters, is unchanged.
Tensor in_logical_order(const Tensor& tensor, const Layout& layout);

}  // namespace tenon::diagnose
