#pragma once

#include "target/facts.h"

namespace tenon {

/// What is known of an NVIDIA GPU of compute capability 9: units are its multiprocessors, the
/// nearest level is what one of them shares among its threads. Measured on one H200.
TargetFacts gpu_facts(const std::string& architecture);

/// Bytes a second that such a GPU exchanges with pinned memory of the host's over PCIe 5.0, each
/// way.
inline constexpr double kGpuLinkBytesPerS = 50e9;

}  // namespace tenon
