#pragma once

#include "target/target.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::driver {

/// Returns all kinds of targets, processors first.
const std::vector<TargetKind>& target_kinds();

/// Parses `--target` and `--precision`: "native", "zen4", "cuda", "cuda:sm_80"; "", "f16", "bf16",
/// on a GPU also "tf32" and "int8" (for quantized models). Throws Error (Usage) with the nearest
/// name.
TargetSpec parse_target(std::string_view text, std::string_view precision = "");
std::shared_ptr<const Target> make_target(const TargetSpec& spec);

/// Returns e.g. "NVRTC 13.0". Throws Error (Device) without it.
std::string cuda_compiler_name();

}  // namespace tenon::driver
