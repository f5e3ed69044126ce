#pragma once

#include "host/kernels/kernel.h"

namespace tenon {

/// Boxes and scores in f32. Classes run in parallel.
bool non_max_suppression_kernel(const HostCall& call);
/// Numbers and truths of one to eight bytes. Parts of the tensor run in parallel.
bool nonzero_kernel(const HostCall& call);
/// Numbers of one to eight bytes. Rows run in parallel, and the parts of a long one.
bool top_k_kernel(const HostCall& call);
/// Elements, not slices: without an axis, or along that of a vector. Numbers of one to eight bytes.
bool unique_kernel(const HostCall& call);

}  // namespace tenon
