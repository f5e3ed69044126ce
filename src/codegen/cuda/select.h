#pragma once

#include "codegen/nest_names.h"
#include "nests/packing.h"
#include "program/library_call.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// GPU architecture and the kernel families that selection may use on it.
struct CudaTarget {
  /// E.g. "sm_90a". The suffix `a` permits wgmma; code for "sm_90" uses mma.sync.
  std::string architecture;
  /// f32 contractions may use tf32. Otherwise they keep full f32 precision, without tensor cores.
  bool allows_tf32 = false;
  /// int8 contractions may use tensor cores, where instructions exist. Otherwise each is a
  /// generated loop nest.
  bool has_int8_multiply_add = false;
  /// cuBLASLt and cuDNN may be called.
  bool uses_libraries = true;
  /// Emits C++ that emulates the device on the CPU, for tests without a GPU.
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

/// One kernel on a device: generated code for a nest, or a library call.
struct DeviceKernel {
  /// The nest, and its arguments as indices into the sequence's buffers. The nest of a library call
  /// has a name only.
  NestSequence::NestCall part;
  /// Kernel family: "loops" (generated loop nest), "attention" (FlashAttention), `kWgmma`, `kMma`,
  /// "cublaslt", "cudnn".
  std::string candidate;
  /// For "loops": reason why neither a library nor tensor cores compute the nest, for `explain`.
  /// May be empty.
  std::string refusal;
  /// Set for library calls.
  std::optional<LibraryCall> library;
  /// Extents of the library call, in the order that `library->kind` prescribes.
  std::vector<Dim> library_extents;
  /// Constants to pack at compile time; `buffer` is an index into `part.buffers`.
  std::vector<nests::Packing> packings;
};

/// Returns the kernels that compute one nest of the sequence (a `part`), in execution order: the
/// contraction, and if necessary copies before it and an epilogue after it. Never empty: a nest
/// that neither tensor cores nor libraries support becomes "loops". May add temporary buffers to
/// the sequence. `is_constant` is indexed by the sequence's buffers; buffers beyond its end are not
/// constant.
std::vector<DeviceKernel> select_kernels(NestSequence& sequence, const NestSequence::NestCall& part,
                                         const std::vector<bool>& is_constant,
                                         const CudaTarget& target);

/// Returns the target for generating a selected kernel. With `is_on_tensor_cores` the size
/// thresholds against libraries do not apply; without, a "loops" kernel stays one.
CudaTarget target_for(const CudaTarget& target, bool is_on_tensor_cores);
/// Names of Tenon's own tensor-core candidates, by instruction.
inline constexpr const char *kWgmma = "wgmma", *kMma = "mma";
inline bool is_on_tensor_cores(std::string_view candidate) {
  return candidate == kWgmma || candidate == kMma;
}

}  // namespace tenon::codegen::cuda
