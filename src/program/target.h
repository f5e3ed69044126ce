#pragma once

#include "program/program.h"

#include <string_view>
#include <vector>

namespace tenon::inline program {

/// Features of this processor that generated code may use, e.g. "AVX2" or "AVX-512F".
std::vector<std::string_view> processor_features();

/// Returns the architecture of a program for a GPU, "sm_90a" for the target "cuda:sm_90a"; empty
/// for a program for a processor.
std::string_view gpu_architecture(const Program& program);

/// Throws Error of kind Device if a processor with these features cannot run the program, naming
/// each missing feature, or if the program's target is unknown.
void require_target(const Program& program,
                    const std::vector<std::string_view>& features = processor_features());

}  // namespace tenon::inline program
