#pragma once

#include "target/facts.h"

#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// What is known of an NVIDIA GPU of compute capability 9: units are its multiprocessors, the
/// nearest level is what one of them shares among its threads. Measured on one H200.
TargetFacts gpu_facts(const std::string& architecture);
/// … for which products of bytes are computed on tensor cores, where it has tiles for them: twice
/// as fast as those of f16 by the count of instructions, not measured.
TargetFacts with_byte_products(TargetFacts facts);
/// The architecture that a target names: "sm_90a" of "cuda:sm_90a", and of "cuda"; nothing of what
/// is no such device.
std::optional<std::string> gpu_architecture(std::string_view target);
/// Its compute capability, times ten: 90 of "sm_90a".
int compute_capability(const std::string& architecture);
/// Tensor cores take fragments of f16, bf16, tf32 and bytes, and threads copy to shared memory
/// ahead, from this one on.
inline constexpr int kFragmentCapability = 80;
/// … from which libraries have instructions that take tiles from shared memory.
inline constexpr int kTileCapability = 90;
/// Whether a target is such a device.
bool is_gpu_target(std::string_view target);

/// Bytes a second that such a GPU exchanges with pinned memory of the host's over PCIe 5.0, each
/// way.
inline constexpr double kGpuLinkBytesPerS = 50e9;
/// What of it copies beside kernels can count on, and what each of them takes besides. Steps are
/// timed one by one and take less time together, so that copies have less time too: with all of
/// the link they came late on an H200.
inline constexpr double kGpuLinkShare = 0.7, kGpuCopySeconds = 1e-4;

}  // namespace tenon
