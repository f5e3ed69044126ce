// Stages of a compilation: passes over graphs and nests, tasks, plan and program.

#include "base/error.h"
#include "driver/compile.h"
#include "driver/stages.h"
#include "fixtures/forwarded_target.h"
#include "ir/text.h"
#include "nests/parse.h"
#include "ops/definition/registry.h"
#include "program/text.h"
#include "unit/error_text.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon {
namespace {

driver::CompileRequest untuned(const std::string& target = "x86-64-v4") {
  driver::CompileRequest request;
  request.target = driver::parse_target(target);
  request.is_untuned = true;
  return request;
}

constexpr const char* kAttention =
    R"(graph attention (q: f32[2, 12, 16], k: f32[2, 12, 16], v: f32[2, 12, 16]) {
  t = transpose(k) {perm = [0, 2, 1]}
  s = matmul(q, t)
  p = softmax(s) {axis = -1}
  y = matmul(p, v)
  return y
}
)";
// Winograd, padding, strides and an epilogue.
constexpr const char* kConvolutions = R"(graph convolutions (x: f32[1, 8, 14, 14]) {
  v = constant f32[32, 8, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  w = constant f32[32, 32, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.1)
  a = conv(x, v) {pads = [1, 1, 1, 1], strides = [2, 2]}
  b = relu(a)
  y = conv(b, w) {pads = [1, 1, 1, 1]}
  return y
}
)";

std::vector<driver::StageText> stages_of(Graph graph, driver::CompileRequest request = untuned()) {
  std::vector<driver::StageText> stages;
  request.passes.on_stage = [&](const driver::StageText& stage) { stages.push_back(stage); };
  driver::compile_model(std::move(graph), request);
  return stages;
}

std::vector<std::string> names_of(const std::vector<driver::StageText>& stages) {
  std::vector<std::string> names;
  for (const driver::StageText& stage : stages) names.push_back(stage.name);
  return names;
}

std::string printed_again(const driver::StageText& stage) {
  switch (stage.kind) {
    case driver::StageText::Kind::Graph:
      return print(parse_graph(stage.text, all_ops()));
    case driver::StageText::Kind::Nests: {
      std::string text;
      for (const nests::LoopNest& nest : nests::parse_nests(stage.text))
        text += to_string(nest) + "\n";
      return text;
    }
    case driver::StageText::Kind::Tasks:
      return to_string(parse_tasks(stage.text));
    case driver::StageText::Kind::Plan:
      return to_string(parse_plan_text(stage.text));
    case driver::StageText::Kind::Program:
      return to_string(parse_program_text(stage.text));
  }
  return "";
}

// `tenon compile --dump-dir` writes these texts.
TEST(Stages, EachParsesBack) {
  for (const Graph& graph : {zoo::build("resnet50?size=64"), zoo::build("mlp?batch=N"),
                             parse_graph(kAttention, all_ops())}) {
    for (const driver::StageText& stage : stages_of(graph))
      EXPECT_EQ(printed_again(stage), stage.text) << graph.name << ", " << stage.name;
  }
}

TEST(Stages, NamesAreThoseOfTheList) {
  const std::vector<std::string> names = names_of(stages_of(zoo::build("resnet18?size=64")));
  std::vector<std::string> listed;
  for (const driver::ListedPass& pass : driver::list_passes(untuned())) listed.push_back(pass.name);
  for (const char* stage : {"tasks", "plan", "program"}) listed.emplace_back(stage);
  EXPECT_EQ(names.front(), listed.front());
  EXPECT_NE(std::ranges::find(names, "register-tile"), names.end());
  // In order; passes of candidates that no node has are missing.
  auto next = listed.begin();
  for (const std::string& name : names) {
    next = std::find(next, listed.end(), name);
    ASSERT_NE(next, listed.end()) << name;
    ++next;
  }
}

TEST(Stages, ListGivesReasons) {
  for (const char* target : {"x86-64-v3", "cuda:sm_90a"}) {
    std::vector<std::string> names;
    for (const driver::ListedPass& pass : driver::list_passes(untuned(target))) {
      EXPECT_NE(pass.reason, "") << pass.name;
      if (pass.is_over_nests) names.push_back(pass.name);
    }
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << target;
  }
}

TEST(Stages, LeavesOutAPassOverNests) {
  const Graph graph = parse_graph(R"(graph (x: f32[2, 32, 64, 64]) {
  y = reduce_sum(x) {axes = [0, 1, 2]}
  return y
}
)",
                                  all_ops());
  const auto kernels_of = [&](std::vector<std::string> without) {
    driver::CompileRequest request = untuned();
    request.passes.without = std::move(without);
    return driver::compile_model(graph, request).program.kernels.size();
  };
  EXPECT_EQ(kernels_of({}), 1u);
  EXPECT_EQ(kernels_of({"tile-and-fuse"}), 2u);
}

TEST(Stages, UnknownPassIsRefused) {
  driver::CompileRequest request = untuned();
  request.passes.without = {"tile-and-fus"};
  const std::string text = error_text([&] { driver::compile_model(zoo::build("mlp"), request); });
  EXPECT_NE(text.find("--without: no pass of this compilation is called 'tile-and-fus'"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tile-and-fuse"), std::string::npos) << text;
}

TEST(Stages, EndsAfterAPass) {
  for (const char* last : {"fold-constants", "tile-and-fuse", "register-tile"}) {
    std::vector<driver::StageText> stages;
    driver::CompileRequest request = untuned();
    request.passes.on_stage = [&](const driver::StageText& stage) { stages.push_back(stage); };
    driver::run_stages(zoo::build("mlp"), request, last);
    ASSERT_FALSE(stages.empty());
    EXPECT_EQ(stages.back().name, last);
  }
}

TEST(Stages, ReportsPassesOverNests) {
  driver::CompileRequest request = untuned();
  request.passes.reports_nests = true;
  const driver::CompileRecord record = driver::compile_model(zoo::build("mlp"), request);
  ASSERT_FALSE(record.nest_passes.empty());
  EXPECT_EQ(record.nest_passes.front().pass, "drop-factor-casts");
  EXPECT_NE(record.nest_passes.front().change.find("nests of 0 of "), std::string::npos)
      << record.nest_passes.front().change;
}

TEST(Stages, VerifiesPassesOverNests) {
  for (const Graph& graph : {zoo::build("mlp"), parse_graph(kConvolutions, all_ops()),
                             parse_graph(kAttention, all_ops())}) {
    driver::CompileRequest request = untuned();
    request.passes.verify_each = true;
    EXPECT_NO_THROW(driver::compile_model(graph, request)) << graph.name;
  }
}

// A processor with a pass that loses the last iteration of sums.
class WrongTarget : public testing::ForwardedTarget {
 public:
  using ForwardedTarget::ForwardedTarget;

  std::vector<nests::NestPass> nest_passes(bool allow_winograd) const override {
    std::vector<nests::NestPass> passes = target_->nest_passes(allow_winograd);
    const auto wrong = std::ranges::find(passes, "split-reductions", &nests::NestPass::name);
    wrong->run = [](nests::NestWork& work) {
      for (nests::NestSequence::NestCall& part : work.sequence.parts) shorten(part.nest.body);
    };
    return passes;
  }

 private:
  static void shorten(nests::Block& block) {
    for (nests::Statement& statement : block) {
      const bool folds =
          statement.body.size() == 1 && statement.body.front().kind == nests::Statement::Kind::Fold;
      if (folds) statement.extent = statement.extent - 1;
      shorten(statement.body);
    }
  }
};

TEST(Stages, NameThePassThatChangesAResult) {
  codegen::CompileOptions options = driver::cpu_options();
  options.target = std::make_shared<WrongTarget>(options.target);
  driver::PassServices services;
  services.verify_each = true;
  driver::NestObserver nests(options.target->nest_pass_list(), services);
  options.nest_passes = nests.options();
  const Graph graph = parse_graph(R"(graph (x: f32[3, 20], w: f32[20, 5]) {
  a = relu(x)
  b = matmul(a, w)
  y = tanh(b)
  return y
}
)",
                                  all_ops());
  const std::string text = error_text([&] { driver::compile_verified(graph, options); });
  EXPECT_NE(text.find("pass 'split-reductions' changes a result"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'matmul b'"), std::string::npos) << text;
  // Reduced to the product.
  EXPECT_NE(text.find("the smallest graph found that shows it:\ngraph"), std::string::npos) << text;
  EXPECT_EQ(text.find("tanh"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon
