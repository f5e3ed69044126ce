#include "base/error.h"
#include "case.h"
#include "codegen/cuda/cuda_target.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "fixtures/forwarded_target.h"
#include "program/verify.h"
#include "target/cpu_facts.h"
#include "testing/random.h"

#include <map>

namespace tenon::testing {
namespace {

constexpr std::uint64_t kEmitted = 8;  // One seed in so many is compiled to machine code.

// A processor without a code generator, for compilations that end with scheduled nests.
class WithoutCode : public ForwardedTarget {
 public:
  using ForwardedTarget::ForwardedTarget;
  Module emit(std::span<const TaskList::Kernel>, bool) const override { return {}; }
};

// Chooses among all candidates that accept, in place of the cheapest.
std::optional<codegen::Selection> any_candidate(const codegen::Decision& decision,
                                                testing::Random& random) {
  std::vector<std::size_t> accepting;
  for (std::size_t k = 0; k < decision.candidates.size(); ++k) {
    if (decision.candidates[k].verdict.accepts) accepting.push_back(k);
  }
  return codegen::Selection{{{random.pick(accepting)}}, "at random"};
}

}  // namespace

void compile_case(SizeCase sized, std::uint64_t seed) {
  testing::Random random(seed + 1);
  const std::string cpu = random.pick(cpu_names());
  const bool is_device = random.chance(15);
  const std::vector<std::string> precisions = {"", "", "", "", "", "", "", "f16", "bf16"};
  codegen::CompileOptions options = driver::cpu_options(cpu);
  options.on_fallback = {};
  options.allow_winograd = random.chance(90);
  const int threads[] = {1, 2, 8, 64};
  options.threads = threads[random.below(4)];
  if (is_device) {
    // Its code is the text of an emulation, which no compiler of a device has to read.
    options.target = codegen::cuda::cuda_target({.architecture = "sm_90a",
                                                 .allows_tf32 = random.chance(30),
                                                 .uses_libraries = random.chance(50),
                                                 .is_emulated = true});
  } else {
    if (random.chance(30)) {
      options.choose = [&random](const codegen::Decision& decision) {
        return any_candidate(decision, random);
      };
    }
    if (seed % kEmitted != 0) options.target = std::make_shared<WithoutCode>(options.target);
  }
  const driver::PipelineOptions passes = driver::pipeline_for(
      driver::parse_target(is_device ? "cuda:sm_90a" : cpu, random.pick(precisions)));
  verify(codegen::compile(driver::run_pipeline(std::move(sized.graph), passes), options).program);
}

}  // namespace tenon::testing
