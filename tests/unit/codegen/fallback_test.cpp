// Candidates with unsound nests: replaced with a warning, or an error without one.

#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "fixtures/forwarded_target.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "unit/codegen/same_results.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tenon::fallback_test {
namespace {

using Break = std::function<void(const Candidate& candidate, MadeKernel& made)>;

// A processor whose candidates pass through `Break`.
class BrokenTarget : public testing::ForwardedTarget {
 public:
  BrokenTarget(std::shared_ptr<const Target> sound, Break breaks)
      : ForwardedTarget(std::move(sound)), breaks_(std::move(breaks)) {}

  std::vector<Candidate> candidates(const KernelWork& work) const override {
    std::vector<Candidate> list = target_->candidates(work);
    for (Candidate& candidate : list) {
      if (!candidate.make) continue;
      candidate.make = [this, whole = candidate](auto& sequence, auto& derived) {
        std::vector<MadeKernel> made = whole.make(sequence, derived);
        breaks_(whole, made.front());
        return made;
      };
    }
    return list;
  }

 private:
  Break breaks_;
};

Graph product() {
  return parse_graph(R"(graph (x: f32[9, 33]) {
  w = constant f32[33, 20] normal(seed = 1, mean = 0.0, deviation = 0.3)
  y = matmul(x, w)
  return y
}
)",
                     all_ops());
}

codegen::CompileOptions options_with(Break breaks) {
  codegen::CompileOptions options = driver::cpu_options();
  options.target = std::make_shared<BrokenTarget>(options.target, std::move(breaks));
  return options;
}

void break_tiles(const Candidate& candidate, MadeKernel& made) {
  if (candidate.name.starts_with("tiles")) made.part.nest.body.front().width = 0;
}

void expect_right(const Program& program) {
  const Graph graph = product();
  const std::vector<Datum> inputs = models::random_inputs(graph, 1);
  CompiledModel model(program, 1);
  EXPECT_LE(largest_difference(model.run(inputs).at(0).tensor(),
                               reference::evaluate(graph, inputs).at(0).tensor()),
            1e-5);
}

TEST(Fallback, NextCandidateReplacesUnsoundOne) {
  codegen::CompileOptions options = options_with(break_tiles);
  options.keeps_record = true;
  std::vector<std::string> warnings;
  options.on_fallback = [&](const InternalError& error, std::string_view alternative) {
    warnings.push_back(concat(error.place(), ": ", alternative));
  };
  const codegen::Compiled compiled = codegen::compile(product(), options);
  expect_right(compiled.program);
  ASSERT_FALSE(warnings.empty());
  EXPECT_NE(warnings.front().find("candidate 'tiles "), std::string::npos) << warnings.front();
  EXPECT_NE(warnings.front().find("' of node 'y' (matmul): the candidate '"), std::string::npos)
      << warnings.front();
  const codegen::Decision& decision = compiled.decisions.at(0);
  const auto& taken = decision.candidates[decision.selection.versions.at(0).candidate];
  EXPECT_TRUE(taken.verdict.accepts) << taken.name;
  EXPECT_TRUE(std::ranges::any_of(decision.candidates, [](const auto& option) {
    return option.verdict.reason.find("runs no positions at a time") != std::string::npos;
  }));
}

TEST(Fallback, FailureWithoutHandlerIsOneLineWithNodeAndNest) {
  const codegen::CompileOptions options = [] {
    codegen::CompileOptions made = options_with(break_tiles);
    made.on_fallback = {};
    return made;
  }();
  try {
    codegen::compile(product(), options);
    FAIL() << "an unsound nest passed";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find("runs no positions at a time"), std::string::npos) << text;
    EXPECT_NE(text.find("of node 'y' (matmul)"), std::string::npos) << text;
    EXPECT_NE(error.details().find("kernel "), std::string::npos) << error.details();
    EXPECT_NE(error.details().find("matmul"), std::string::npos) << error.details();
  }
}

// All candidates fail for the nests as optimised for the target.
TEST(Fallback, NestsOfDefinitionReplaceOptimisedOnes) {
  std::set<std::string> failed;
  codegen::CompileOptions options =
      options_with([&failed](const Candidate& candidate, const MadeKernel&) {
        TENON_ASSERT(!failed.insert(candidate.name).second, "the candidate fails once");
      });
  std::vector<std::string> alternatives;
  options.on_fallback = [&](const InternalError&, std::string_view alternative) {
    alternatives.emplace_back(alternative);
  };
  expect_right(codegen::compile(product(), options).program);
  ASSERT_FALSE(alternatives.empty());
  EXPECT_EQ(alternatives.back(), "the nests that define the node take its place");
}

TEST(Fallback, EndsWithoutSoundCandidate) {
  codegen::CompileOptions options = options_with(
      [](const Candidate&, MadeKernel& made) { made.part.nest.body.front().width = 0; });
  options.on_fallback = [](const InternalError&, std::string_view alternative) {
    FAIL() << alternative;
  };
  EXPECT_THROW(codegen::compile(product(), options), InternalError);
}

TEST(Fallback, StrictEnvironmentMakesItAnError) {
  EXPECT_FALSE(driver::cpu_options().on_fallback);
  unsetenv("TENON_STRICT");
  EXPECT_TRUE(driver::cpu_options().on_fallback);
  setenv("TENON_STRICT", "1", 1);
}

}  // namespace
}  // namespace tenon::fallback_test
