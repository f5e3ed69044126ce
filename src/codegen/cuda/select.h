#pragma once

#include "codegen/nest_names.h"
#include "nests/packing.h"
#include "program/library_call.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

struct CudaTarget {
  /// E.g. "sm_90a".
  std::string architecture;
  /// f32 contractions may use tf32.
  bool allows_tf32 = false;
  /// Byte contractions may use tensor cores, where instructions exist.
  bool has_int8_multiply_add = false;
  bool uses_libraries = true;
  /// Emit C++ that emulates the device on the processor, for tests without a GPU.
  bool is_emulated = false;
  /// Tenon's own tensor-core kernels may be used.
  bool uses_tensor_cores = true;
  /// Own tensor-core kernels take priority over libraries.
  bool prefers_tensor_cores = false;

  /// mma.sync takes priority over wgmma.
  bool prefers_mma_sync = false;

  /// True if the target has wgmma and TMA.
  bool has_wgmma() const {
    return architecture == "sm_90a" && uses_tensor_cores && !prefers_mma_sync;
  }
  /// True if the target has mma.sync and cp.async but not wgmma; a kernel is written for one of the
  /// two.
  bool has_mma() const;
};
/// Parses "cuda:sm_90a", or "cuda" for the newest known architecture. Returns nullopt for other
/// texts.
std::optional<CudaTarget> parse_target(const std::string& text);

/// Implementation of one nest of a sequence on a device: a generated kernel or a library call.
struct DeviceKernel {
  /// Its buffers are those of the call, in order.
  NestSequence::NestCall part;
  /// "loops", "attention", `kWgmma`, `kMma`, "cublaslt", "cudnn".
  std::string candidate;
  /// Reason why no library was chosen, for `explain`.
  std::string refusal;
  std::optional<LibraryCall> library;
  std::vector<Dim> library_extents;
  /// Packings of constants; `buffer` is an index into `part.buffers`.
  std::vector<nests::Packing> packings;
};

/// Fuses, splits and inlines nests for the device.
void arrange(NestSequence& sequence, const CudaTarget& target);

/// Returns the kernels that compute a part, in execution order. May add buffers to the sequence.
std::vector<DeviceKernel> select_kernels(NestSequence& sequence, const NestSequence::NestCall& part,
                                         const std::vector<bool>& is_constant,
                                         const CudaTarget& target);

/// Returns the target for writing a selected kernel: tensor-core matches ignore sizes, and loops
/// stay loops.
CudaTarget target_for(const CudaTarget& target, bool is_on_tensor_cores);
/// Names of Tenon's own tensor-core candidates, by instruction.
inline constexpr const char *kWgmma = "wgmma", *kMma = "mma";
inline bool is_on_tensor_cores(std::string_view candidate) {
  return candidate == kWgmma || candidate == kMma;
}

}  // namespace tenon::codegen::cuda
