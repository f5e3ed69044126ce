#pragma once

#include "codegen/nest_names.h"
#include "target/target.h"

#include <span>
#include <string>

namespace tenon::codegen::cpu {

/// Compiles the nests of kernels to machine code, under the nests' names. Throws Error of kind
/// Unsupported if a kernel cannot be generated.
Module compile_nests(std::span<const TaskList::Kernel> kernels, const TargetFacts& facts,
                     bool keeps_text);

/// Identifies the conditions that determine the speed of the target's code here: this processor,
/// its features, the target.
std::string machine_name(const TargetFacts& facts);
/// Identifies the code generator: a hash of its sources, and LLVM's version.
std::string generator_name();

}  // namespace tenon::codegen::cpu
