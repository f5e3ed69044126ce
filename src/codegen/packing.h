#pragma once

#include "codegen/contraction.h"
#include "ir/tensor.h"

namespace tenon::codegen {

/// Writes a tensor in the order in which a nest reads it. Positions past the packing's limit are left as
/// they are.
void pack(const Packing& packing, const Tensor& tensor, std::byte* target);

}  // namespace tenon::codegen
