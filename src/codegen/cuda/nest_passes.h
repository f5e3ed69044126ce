#pragma once

#include "codegen/cuda/select.h"
#include "nests/nest_pass.h"

#include <span>
#include <vector>

namespace tenon::codegen::cuda {

/// Returns the passes over nests of a GPU in order.
std::span<const nests::NestPassInfo> nest_pass_list();

/// Returns the passes over the nests of a node, which precede `select_kernels`. `target` must
/// outlive them.
std::vector<nests::NestPass> node_passes(const CudaTarget& target);

}  // namespace tenon::codegen::cuda
