#pragma once

#include "driver/compile.h"
#include "program/target.h"

#include <algorithm>

namespace tenon {

/// Options under which facts of a Zen 4 decide wherever its code runs, for tests of what is chosen:
/// the processor that they run on may have reasons for something else.
inline codegen::CompileOptions decided_options() {
  const std::vector<std::string_view> features = processor_features();
  const bool has_avx512 = std::ranges::find(features, "AVX-512VL") != features.end();
  return cpu_options(has_avx512 ? "zen4" : "native");
}

}  // namespace tenon
