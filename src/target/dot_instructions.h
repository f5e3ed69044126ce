#pragma once

#include "target/facts.h"

#include <string_view>

namespace tenon::inline target {

/// Returns the int8 dot-product extension that the processor has on top of its architecture level,
/// derived from its rates: "avx512-vnni", "avx-vnni", or "amx-int8" for VNNI and AMX tiles. Empty
/// if a dot product of four bytes takes several instructions.
inline std::string_view dot_instructions(const TargetFacts& facts) {
  const double times =
      facts.multiply_adds_per_cycle(DType::U8) / facts.multiply_adds_per_cycle(DType::F32);
  return times <= 1                ? ""
         : times >= 16             ? "amx-int8"
         : facts.vector_bits > 256 ? "avx512-vnni"
                                   : "avx-vnni";
}
inline bool has_dot_instructions(const TargetFacts& facts) {
  return !dot_instructions(facts).empty();
}

}  // namespace tenon::inline target
