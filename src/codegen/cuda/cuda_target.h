#pragma once

#include "codegen/cuda/select.h"
#include "target/gpu_facts.h"
#include "target/target.h"

#include <memory>

namespace tenon::codegen::cuda {

/// Returns the target of an NVIDIA GPU.
std::shared_ptr<const Target> cuda_target(CudaTarget device, DeviceNames names = {});

/// NVIDIA GPUs.
TargetKind cuda_kind(DeviceNames names);

}  // namespace tenon::codegen::cuda
