#pragma once

#include "codegen/nest_names.h"
#include "target/target.h"

#include <span>
#include <string>

namespace tenon::codegen::cpu {

/// Machine code for nests. Throws Error of kind Unsupported for what kernels cannot compute.
Module compile_nests(std::span<const KernelSource> kernels, const TargetFacts& facts,
                     bool keeps_text);

/// What decides how fast code for this target is here: this processor, what it can do, the target.
std::string machine_name(const TargetFacts& facts);
/// What decides which code is made of a nest: a number made of the sources of the code generator,
/// and LLVM.
std::string generator_name();

}  // namespace tenon::codegen::cpu
