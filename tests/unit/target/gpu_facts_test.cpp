#include "target/gpu_facts.h"

#include <gtest/gtest.h>

namespace tenon::gpu_facts_test {
namespace {

TEST(GpuFacts, AreOfTargetsThatAreGpus) {
  EXPECT_TRUE(is_gpu_target("cuda"));
  EXPECT_TRUE(is_gpu_target(gpu_facts("sm_90a").name));
  for (const char* other : {"", "native", "x86-64-v3", "cudagraph", "cuda_90"})
    EXPECT_FALSE(is_gpu_target(other)) << other;
}

}  // namespace
}  // namespace tenon::gpu_facts_test
