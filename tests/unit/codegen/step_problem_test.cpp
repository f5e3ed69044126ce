#include "codegen/cuda/select.h"
#include "codegen/select.h"
#include "codegen/step_problem.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "target/gpu_facts.h"

#include <gtest/gtest.h>

namespace tenon::step_problem_test {
namespace {

constexpr double kFlops = 2.0 * 4096 * 4096 * 4096;

// Returns the estimated seconds of a large product on a device.
double product_seconds(const std::string& dtype, bool allows_tf32, bool uses_libraries = true) {
  const std::string type = dtype + "[4096, 4096]";
  codegen::CompileOptions options = cpu_options();
  options.device =
      codegen::cuda::CudaTarget{.architecture = "sm_90a", .uses_libraries = uses_libraries};
  options.device->allows_tf32 = allows_tf32;
  const TaskList list = codegen::select(
      parse_graph("graph (a: " + type + ", b: " + type + ") {\n  y = matmul(a, b)\n  return y\n}\n",
                  all_ops()),
      options);
  const TargetFacts facts = gpu_facts("sm_90a");
  const auto described = codegen::step_problem(list, facts, static_cast<int>(facts.units));
  return described->problem.seconds();
}

// The estimate is 60 % of the peak rate of the product's element type.
TEST(StepProblem, DeviceGemmsUsePeakOfElementType) {
  const auto expected = [](double flops_per_s) { return kFlops / (0.6 * flops_per_s); };
  EXPECT_NEAR(product_seconds("f32", false) / expected(51e12), 1, 0.02);
  EXPECT_NEAR(product_seconds("f32", true) / expected(397e12), 1, 0.02);
  EXPECT_NEAR(product_seconds("f16", false) / expected(786e12), 1, 0.02);
  // generated kernels
  EXPECT_NEAR(product_seconds("f16", false, false) / expected(786e12), 1, 0.02);
}

}  // namespace
}  // namespace tenon::step_problem_test
