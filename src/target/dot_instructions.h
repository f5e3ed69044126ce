#pragma once

#include "target/facts.h"

#include <string_view>

namespace tenon {

/// The instructions, beside those of its level, by which a processor adds up four products of
/// bytes, as its rates tell: "avx512-vnni" or "avx-vnni"; empty where it takes several for that.
inline std::string_view dot_instructions(const TargetFacts& facts) {
  const bool is_faster = facts.products_per_cycle(DType::U8) > facts.products_per_cycle(DType::F32);
  return !is_faster ? "" : facts.vector_bits > 256 ? "avx512-vnni" : "avx-vnni";
}
inline bool has_dot_instructions(const TargetFacts& facts) {
  return !dot_instructions(facts).empty();
}

}  // namespace tenon
