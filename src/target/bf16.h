#pragma once

#include "target/facts.h"

#include <string_view>

namespace tenon::inline target {

/// Returns the bf16 dot-product extension that the processor has on top of its architecture level,
/// derived from its rates: "avx512-bf16", or "amx-bf16" for AMX tiles. Empty if bf16 is widened to
/// f32 before it is multiplied.
inline std::string_view bf16_instructions(const TargetFacts& facts) {
  const double times =
      facts.multiply_adds_per_cycle(DType::BF16) / facts.multiply_adds_per_cycle(DType::F32);
  return times >= 8 ? "amx-bf16" : times > 1 ? "avx512-bf16" : "";
}

}  // namespace tenon::inline target
