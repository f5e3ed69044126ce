// A new target: its class and one line in the list of kinds.
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "fixtures/forwarded_target.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "unit/codegen/same_results.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::targets_test {
namespace {

// The processor's loops, without tiles and without weight-gradient products over the batch.
class LoopsTarget : public testing::ForwardedTarget {
 public:
  using ForwardedTarget::ForwardedTarget;
  TargetSpec spec() const override { return {"loops", target_->spec().architecture}; }
  std::vector<PassChange> graph_pipeline() const override {
    return {{"fold-batch-reductions", "", "there are no products"}};
  }
  std::vector<Candidate> candidates(const KernelWork& work) const override {
    return {target_->candidates(work).back()};
  }
  std::vector<std::string> candidate_names() const override { return {"loops"}; }
};

std::vector<TargetKind> kinds_with_loops() {
  std::vector<TargetKind> kinds = driver::target_kinds();
  kinds.push_back(
      {.name = "loops", .architectures = {"x86-64-v3"}, .make = [](const TargetSpec& s) {
         return std::make_shared<LoopsTarget>(driver::make_target({"cpu", s.architecture}));
       }});
  return kinds;
}

TEST(Targets, ANewKindIsAClassAndALine) {
  const std::vector<TargetKind> kinds = kinds_with_loops();
  const TargetSpec spec = parse_target_spec("loops", "", kinds);
  EXPECT_EQ(to_string(spec), "loops:x86-64-v3");
  codegen::CompileOptions options;
  options.target = make_target(spec, kinds);
  const driver::PipelineOptions passes = driver::pipeline_for(*options.target, spec.precision);
  EXPECT_EQ(std::ranges::count(passes.passes, "fold-batch-reductions"), 0);
  const Graph graph = parse_graph(R"(graph (x: f32[9, 33]) {
  w = constant f32[33, 20] normal(seed = 1, mean = 0.0, deviation = 0.3)
  p = matmul(x, w)
  y = relu(p)
  return y
}
)",
                                  all_ops());
  const Program program = codegen::compile(driver::run_pipeline(graph, passes), options).program;
  ASSERT_EQ(program.steps.size(), 1U);
  EXPECT_EQ(program.steps.front().candidate, "loops");
  const std::vector<Datum> inputs = models::random_inputs(graph, 1);
  EXPECT_LE(largest_difference(CompiledModel(program, 2).run(inputs).front().tensor(),
                               reference::evaluate(graph, inputs).front().tensor()),
            1e-5);
}

// Every kind changes passes of the standard list only.
TEST(Targets, PipelinesAreDifferencesFromTheStandardList) {
  for (const TargetKind& kind : driver::target_kinds()) {
    const TargetSpec spec{kind.name, kind.architectures.front()};
    for (const PassChange& change : driver::make_target(spec)->graph_pipeline()) {
      EXPECT_FALSE(change.reason.empty()) << change.pass;
      EXPECT_NO_THROW(passes::find_pass(change.pass));
    }
    EXPECT_NO_THROW(driver::chosen_passes(driver::pipeline_for(spec)));
  }
}

}  // namespace
}  // namespace tenon::targets_test
