#pragma once

#include "codegen/nest_names.h"
#include "nests/packing.h"
#include "program/library_call.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

struct Target {
  /// "sm_90a"
  std::string architecture;
  /// f32 products may drop digits
  bool allows_tf32 = false;
  /// … of bytes are on tensor cores, where there are such instructions
  bool multiplies_bytes = false;
  bool uses_libraries = true;
  /// C++ for the processor that does what the device would, to be tried without one
  bool is_emulated = false;
  /// by kernels of our own
  bool uses_tensor_cores = true;
  /// … also for what a library is thought to be faster at.
  bool prefers_tensor_cores = false;

  /// … with fragments in registers, where they take tiles from shared memory too.
  bool prefers_fragments = false;

  /// Whether tensor cores take tiles from shared memory, and those come by tensor maps.
  bool has_wgmma() const {
    return architecture == "sm_90a" && uses_tensor_cores && !prefers_fragments;
  }
  /// Whether they are given fragments of these types, and threads copy ahead what those come from;
  /// a kernel is written for one of both.
  bool has_mma() const;
};
/// "cuda:sm_90a", or "cuda" for the newest that is known. Nothing where the text names no such
/// target.
std::optional<Target> parse_target(const std::string& text);

/// What computes one nest of a sequence on a device: loops of our own, or a library.
struct DeviceKernel {
  /// its buffers are those of the call, in order
  NestSequence::Part part;
  /// "loops", "attention", `kWgmma`, `kMma`, "cublaslt", "cudnn"
  std::string candidate;
  /// why no library: for `explain`
  std::string refusal;
  std::optional<LibraryCall> library;
  std::vector<Dim> library_extents;
  /// of constants; `buffer` is a place in `part.buffers`
  std::vector<nests::Packing> packings;
};

/// Puts nests together, or makes some needless, where that suits the device.
void arrange(NestSequence& sequence, const Target& target);

/// The kernels that compute a part, one after another. May add buffers to the sequence.
std::vector<DeviceKernel> select_kernels(NestSequence& sequence, const NestSequence::Part& part,
                                         const std::vector<bool>& is_constant,
                                         const Target& target);

/// The target as whoever writes a kernel is to see it: one that was selected for tensor cores is
/// matched to them whatever its size, and loops stay loops.
Target target_for(const Target& target, bool is_on_tensor_cores);
/// Kernels of our own on tensor cores, by the instructions that those take.
inline constexpr const char *kWgmma = "wgmma", *kMma = "mma";
inline bool is_on_tensor_cores(std::string_view candidate) {
  return candidate == kWgmma || candidate == kMma;
}

}  // namespace tenon::codegen::cuda
