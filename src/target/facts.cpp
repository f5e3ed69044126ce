#include "target/facts.h"

#include "base/error.h"

namespace tenon {

const MemoryLevel& TargetFacts::own_cache() const {
  const MemoryLevel* found = &levels.front();
  for (const MemoryLevel& level : levels) {
    if (!level.is_shared) found = &level;
  }
  return *found;
}

const MemoryLevel& TargetFacts::shared_cache() const {
  return levels.size() < 2 ? levels.back() : levels[levels.size() - 2];
}

double TargetFacts::products_per_cycle(DType operand) const {
  for (const Rate& rate : rates) {
    if (rate.operand == operand) return rate.flops_per_s / 2 / cycles_per_s;
  }
  TENON_ASSERT(operand != DType::F32, "a target says how fast it computes with f32");
  return products_per_cycle(DType::F32);
}

}  // namespace tenon
