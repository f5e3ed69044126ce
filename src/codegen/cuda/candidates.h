#pragma once

#include "codegen/cuda/select.h"
#include "target/candidate.h"

#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A way to compute a nest on a device: one kernel or a sequence of kernels.
struct DeviceCandidate {
  /// Implementation of the dominant kernel: `kWgmma`, `kMma`, "cudnn", "cublaslt", "loops".
  std::string name;
  /// The cost only ranks the candidates; `reason` is also set if the candidate is accepted.
  Verdict verdict;
  /// The target to pass to `select_kernels` for this candidate.
  CudaTarget target;
};

/// Candidates for a part, ordered by estimated speed; without tuning the first is taken.
std::vector<DeviceCandidate> device_candidates(const NestSequence& sequence,
                                               const NestSequence::NestCall& part,
                                               const std::vector<bool>& is_constant,
                                               const CudaTarget& target);

/// Text of the target's properties, apart from the nest, that decide which candidates accept.
std::string work_text(const CudaTarget& target);

}  // namespace tenon::codegen::cuda
