#pragma once

#include "driver/compile.h"

namespace tenon::testing {

/// Returns options for the widest vectors of this machine and the cost parameters of the processor
/// that the estimates were tuned on, so that choices do not depend on the machine.
inline codegen::CompileOptions tuned_cpu() {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return driver::cpu_options(has_avx512 ? "x86-64-v4" : "x86-64-v3");
}

}  // namespace tenon::testing
