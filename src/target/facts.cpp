#include "target/facts.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline target {

const MemoryLevel& TargetFacts::private_cache() const {
  const MemoryLevel* found = &levels.front();
  for (const MemoryLevel& level : levels) {
    if (!level.is_shared) found = &level;
  }
  return *found;
}

const MemoryLevel& TargetFacts::last_level_cache() const {
  return levels.size() < 2 ? levels.back() : levels[levels.size() - 2];
}

double TargetFacts::flops_per_s(DType operand, bool allows_tf32_rounding) const {
  double fastest = 0;
  for (const Rate& rate : rates) {
    if (rate.operand != operand || (rate.rounds_to_tf32 && !allows_tf32_rounding)) continue;
    fastest = std::max(fastest, rate.flops_per_s);
  }
  if (fastest > 0) return fastest;
  TENON_ASSERT(operand != DType::F32, "a target says how fast it computes with f32");
  return flops_per_s(DType::F32, allows_tf32_rounding);
}

bool TargetFacts::has_int8_multiply_add() const {
  return std::any_of(rates.begin(), rates.end(),
                     [](const Rate& rate) { return rate.operand == DType::U8; });
}

double TargetFacts::multiply_adds_per_cycle(DType operand) const {
  return flops_per_s(operand) / 2 / cycles_per_s;
}

}  // namespace tenon::inline target
