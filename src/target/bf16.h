#pragma once

#include "target/facts.h"

#include <string_view>

namespace tenon {

/// The instructions, beside those of its level, by which a processor adds up pairs of products of
/// bf16 in f32, as its rates tell: "avx512-bf16", or "amx-bf16" for whole tiles; empty where bf16
/// is widened first.
inline std::string_view bf16_instructions(const TargetFacts& facts) {
  const double times = facts.products_per_cycle(DType::BF16) / facts.products_per_cycle(DType::F32);
  return times >= 8 ? "amx-bf16" : times > 1 ? "avx512-bf16" : "";
}

}  // namespace tenon
