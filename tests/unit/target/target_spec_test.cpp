#include "driver/targets.h"
#include "target/target_spec.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::target_spec_test {
namespace {

TEST(TargetSpec, TextOfEveryKnownTarget) {
  for (const TargetKind& kind : driver::target_kinds()) {
    for (const std::string& architecture : kind.architectures) {
      const TargetSpec spec{kind.name, architecture};
      EXPECT_EQ(driver::parse_target(to_string(spec)), spec);
      EXPECT_EQ(driver::parse_target(kind.name + ":" + architecture), spec);
    }
  }
  EXPECT_EQ(to_string(driver::parse_target("x86-64-v3")), "x86-64-v3");
  EXPECT_EQ(to_string(driver::parse_target("cuda:sm_75")), "cuda:sm_75");
}

TEST(TargetSpec, KindAloneHasItsDefaultArchitecture) {
  EXPECT_EQ(to_string(driver::parse_target("cuda")), "cuda:sm_90a");
  EXPECT_EQ(driver::parse_target("cpu"), TargetSpec{});
}

TEST(TargetSpec, OnlyCudaIsAGpu) {
  EXPECT_TRUE(driver::parse_target("cuda:sm_80").is_gpu());
  EXPECT_FALSE(driver::parse_target("native").is_gpu());
}

TEST(TargetSpec, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(error_text([] { driver::parse_target("zen5"); }),
            "no target is called 'zen5'\n  hint      did you mean 'zen4'?");
  EXPECT_EQ(error_text([] { driver::parse_target("cuda:sm_90b"); }),
            "no target is called 'cuda:sm_90b'\n  hint      did you mean 'cuda:sm_90a'?");
  for (const char* other : {"", "cudagraph", "cuda_90", "cuda:zen4", "cuda:fast", "gpu:sm_80"})
    EXPECT_THROW(driver::parse_target(other), Error) << other;
}

TEST(TargetSpec, PrecisionsOfAKind) {
  using enum TargetSpec::Precision;
  EXPECT_EQ(driver::parse_target("native", "").precision, F32);
  EXPECT_EQ(driver::parse_target("native", "fp16").precision, F16);
  EXPECT_EQ(driver::parse_target("cuda", "int8").precision, Int8);
  EXPECT_EQ(error_text([] { driver::parse_target("native", "tf32"); }),
            "no precision is called 'tf32'\n  expected  f32, f16 or bf16");
  EXPECT_EQ(error_text([] { driver::parse_target("cuda", "f8"); }),
            "no precision is called 'f8'\n  expected  f32, tf32, f16, bf16 or int8");
}

}  // namespace
}  // namespace tenon::target_spec_test
