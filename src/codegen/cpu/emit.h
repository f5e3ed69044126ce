#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/nest_names.h"

namespace tenon::codegen::cpu {

/// What code is made for: a level of the x86-64 architecture or this very machine.
struct Target {
  std::string cpu = "native";  ///< "native", "x86-64-v3", "x86-64-v4"
};

/// Machine code for nests: the function of nest k is called `symbols[k]`.
struct CompiledNests {
  std::vector<std::byte> object;  ///< a relocatable object file
  std::string ir, assembly;       ///< where asked for
};
struct EmitOptions {
  Target target;
  bool keep_text = false;
};
/// Throws Error of kind Unsupported for what kernels cannot compute.
CompiledNests compile_nests(const std::vector<const LoopNest*>& nests, const std::vector<std::string>& symbols,
                            const EmitOptions& options);

/// The vector registers that code for this target has.
struct Registers {
  unsigned count = 16, bits = 256;
};
Registers registers_of(const Target& target);

/// The level of the architecture that code for this target needs.
std::string target_level(const Target& target);

/// What decides how fast code for this target is here: this processor, what it can do, the target.
std::string machine_name(const Target& target);
/// What decides which code is made of a nest: a number made of the sources of the code generator, and LLVM.
std::string generator_name();

}  // namespace tenon::codegen::cpu
