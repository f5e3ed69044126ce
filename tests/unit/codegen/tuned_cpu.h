#pragma once

#include "driver/compile.h"

namespace tenon::testing {

/// For the widest vectors that this machine has, on a processor like the one that estimates were
/// tuned on: what is chosen so is the same on every machine that can run it.
inline codegen::CompileOptions tuned_cpu() {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return cpu_options(has_avx512 ? "x86-64-v4" : "x86-64-v3");
}

}  // namespace tenon::testing
