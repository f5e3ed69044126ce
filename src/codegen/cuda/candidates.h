#pragma once

#include "codegen/cuda/select.h"
#include "target/candidate.h"

#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// A way to compute a nest on a device, by one kernel or by several one after another.
struct DeviceCandidate {
  /// what does most of the work: `kWgmma`, `kMma`, "cudnn", "cublaslt", "loops"
  std::string name;
  /// its cost is only a place in their order; `reason` also of a yes
  Verdict verdict;
  /// for which `select_kernels` makes it
  Target target;
};

/// What may compute a part, in the order of what is thought to be fastest: what is taken untimed
/// comes first.
std::vector<DeviceCandidate> device_candidates(const NestSequence& sequence,
                                               const NestSequence::Part& part,
                                               const std::vector<bool>& is_constant,
                                               const Target& target);

/// What of a target says, beside the nest, what accepts.
std::string work_text(const Target& target);

}  // namespace tenon::codegen::cuda
