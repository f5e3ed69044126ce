#pragma once

namespace tenon::inline host {

/// Widest vector extension of this processor for which host kernels are compiled.
enum class VectorLevel : unsigned char { Plain, Avx2, Avx512 };

inline VectorLevel vector_level() {
  static const VectorLevel level = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return VectorLevel::Avx512;
    }
    return __builtin_cpu_supports("avx2") ? VectorLevel::Avx2 : VectorLevel::Plain;
  }();
  return level;
}

/// Selects the version of a function that this processor supports (function multiversioning).
template <class Function>
Function for_this_processor(Function avx512, Function avx2, Function plain) {
  const VectorLevel level = vector_level();
  return level == VectorLevel::Avx512 ? avx512 : level == VectorLevel::Avx2 ? avx2 : plain;
}

}  // namespace tenon::inline host

// Inlined into each multiversioned function, hence compiled per level.
#define TENON_INLINE [[gnu::always_inline]] inline
#define TENON_AVX2 [[gnu::target("avx2")]]
#define TENON_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
