#pragma once

#include "program/program.h"

#include <string_view>
#include <vector>

namespace tenon {

/// Those of this processor that generated code may use, as "AVX2" or "AVX-512F".
std::vector<std::string_view> processor_features();

/// Throws Error of kind Device, naming each missing feature, if a processor with these cannot run
/// the program, and if nobody knows what the program needs.
void require_target(const Program& program,
                    const std::vector<std::string_view>& features = processor_features());

}  // namespace tenon
