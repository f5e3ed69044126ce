#pragma once

#include "host/kernels/kernel.h"

namespace tenon::inline host {

/// Boxes and scores in f32. Parallel over classes.
bool non_max_suppression_kernel(const HostCall& call);
/// Numbers and booleans of one to eight bytes. Parallel over parts of the tensor.
bool nonzero_kernel(const HostCall& call);
/// Numbers of one to eight bytes. Parallel over rows and over parts of long rows.
bool top_k_kernel(const HostCall& call);
/// Elements, not slices: without an axis, or along the axis of a vector. Numbers of one to eight
/// bytes.
bool unique_kernel(const HostCall& call);

}  // namespace tenon::inline host
