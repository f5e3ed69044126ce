#pragma once

#include "target/facts.h"

#include <string_view>

namespace tenon {

/// The instructions, beside those of its level, by which a processor adds up four products of
/// bytes, as its rates tell: "avx512-vnni" or "avx-vnni", "amx-int8" for the first and whole tiles;
/// empty where it takes several for that.
inline std::string_view dot_instructions(const TargetFacts& facts) {
  const double times = facts.products_per_cycle(DType::U8) / facts.products_per_cycle(DType::F32);
  return times <= 1                ? ""
         : times >= 16             ? "amx-int8"
         : facts.vector_bits > 256 ? "avx512-vnni"
                                   : "avx-vnni";
}
inline bool has_dot_instructions(const TargetFacts& facts) {
  return !dot_instructions(facts).empty();
}

}  // namespace tenon
