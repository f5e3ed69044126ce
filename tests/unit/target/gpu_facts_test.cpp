#include "target/gpu_facts.h"

#include <gtest/gtest.h>

namespace tenon::gpu_facts_test {
namespace {

TEST(GpuFacts, ArchitecturesHaveANumber) {
  for (const char* name : {"sm_80", "sm_90a", "sm_120"}) EXPECT_TRUE(is_gpu_architecture(name));
  for (const char* other : {"", "90a", "sm_", "sm_9", "sm_90b", "sm_fast", "zen4"})
    EXPECT_FALSE(is_gpu_architecture(other)) << other;
}

TEST(GpuFacts, GeneratedTilesFromCapability80) {
  EXPECT_EQ(compute_capability("sm_90a"), 90);
  EXPECT_EQ(compute_capability("sm_120"), 120);
  for (const char* architecture : {"sm_80", "sm_89", "sm_90a"})
    EXPECT_TRUE(with_int8_tensor_cores(gpu_facts(architecture)).has_int8_multiply_add())
        << architecture;
  EXPECT_FALSE(with_int8_tensor_cores(gpu_facts("sm_75")).has_int8_multiply_add());
}

TEST(GpuFacts, Tf32IsFasterOnlyIfAllowed) {
  const TargetFacts facts = gpu_facts("sm_90a");
  EXPECT_GT(facts.flops_per_s(DType::F32, true), facts.flops_per_s(DType::F32));
  EXPECT_EQ(facts.flops_per_s(DType::BF16, true), facts.flops_per_s(DType::BF16));
  // int8 has no stated rate
  EXPECT_EQ(facts.flops_per_s(DType::U8), facts.flops_per_s(DType::F32));
}

}  // namespace
}  // namespace tenon::gpu_facts_test
