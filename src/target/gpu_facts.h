#pragma once

#include "target/facts.h"

#include <functional>
#include <string>
#include <string_view>

namespace tenon::inline target {

/// Returns the facts of an NVIDIA GPU of compute capability 9: units are multiprocessors (SMs), the
/// nearest level is shared memory. Measured on one H200.
TargetFacts gpu_facts(const std::string& architecture);
/// Adds the rate of int8 tensor cores if the target has GEMM tiles: twice the f16 rate by
/// instruction throughput, not measured.
TargetFacts with_int8_tensor_cores(TargetFacts facts);
/// Names of this machine's device and libraries, which the runtime knows. The functions throw Error
/// (Device) without a device.
struct DeviceNames {
  std::function<std::string()> device, libraries;
};

/// Returns whether a text is the name of a GPU architecture: "sm_80", "sm_90a".
bool is_gpu_architecture(std::string_view text);
/// Returns ten times the compute capability: 90 for "sm_90a".
int compute_capability(const std::string& architecture);
/// First compute capability with mma.sync fragments of f16, bf16, tf32 and int8, and with
/// asynchronous copies to shared memory (cp.async).
inline constexpr int kFragmentCapability = 80;
/// First compute capability with wgmma, whose operand tiles come from shared memory.
inline constexpr int kTileCapability = 90;

/// Bytes per second between the GPU and pinned host memory over PCIe 5.0, in each direction.
inline constexpr double kGpuLinkBytesPerS = 50e9;
/// Share of the link bandwidth that copies concurrent with kernels can rely on, and the fixed time
/// per copy. Steps are timed one by one and are faster in sequence, which leaves less time for
/// copies: a plan with the full bandwidth delivered them late. Measured on an H200.
inline constexpr double kGpuLinkShare = 0.7, kGpuCopySeconds = 1e-4;

}  // namespace tenon::inline target
