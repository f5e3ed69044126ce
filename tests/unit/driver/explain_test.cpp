#include "base/error.h"
#include "driver/explain.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

namespace tenon::explain_test {
namespace {

Graph example() {
  return parse_graph(R"(graph (x: f32[4, 8], w: f32[8, 3]) {
    one = constant f32[] 1
    two = constant f32[] 2
    three = add(one, two) @ "sum"
    m = matmul(x, w) @ "product"
    b = add(m, three)
    y = relu(b)
    return y
  })",
                     all_ops());
}

TEST(Explain, PrintsTheHistoryOfANode) {
  const driver::Explanation folded = driver::explain(example(), "three");
  EXPECT_EQ(folded.op, "add");
  ASSERT_FALSE(folded.steps.empty());
  EXPECT_EQ(folded.steps.front().pass, "fold-constants");
  EXPECT_EQ(folded.end_op, "constant");
}

TEST(Explain, NamesTheFusionGroup) {
  const driver::Explanation fused = driver::explain(example(), "b");
  EXPECT_EQ(fused.type, "f32[4, 3]");
  EXPECT_EQ(fused.end_op, "add");
  EXPECT_EQ(fused.group, "y");
  EXPECT_NE(std::find(fused.members.begin(), fused.members.end(), "m (matmul)"),
            fused.members.end());
  EXPECT_TRUE(
      std::any_of(fused.steps.begin(), fused.steps.end(),
                  [](const driver::Explanation::Step& step) { return step.pass == "fuse"; }));
}

TEST(Explain, AcceptsNamesOfTheSourceModel) {
  EXPECT_EQ(driver::explain(example(), "product").name, "m");
}

// A batch norm is folded into the convolution before it, whose result takes the norm's name.
TEST(Explain, FollowsReplacedNodes) {
  const driver::Explanation folded = driver::explain(parse_graph(R"(graph (x: f32[1, 2, 4, 4]) {
    w = constant f32[2, 2, 1, 1] [1, 2, 3, 4]
    s = constant f32[2] [2, 3]
    b = constant f32[2] [0, 1]
    m = constant f32[2] [0, 0]
    v = constant f32[2] [1, 1]
    conv1 = conv(x, w)
    bn1 = batch_norm(conv1, s, b, m, v)
    relu1 = relu(bn1)
    return relu1
  })",
                                                                 all_ops()),
                                                     "conv1");
  EXPECT_EQ(folded.name, "conv1");
  EXPECT_TRUE(std::any_of(
      folded.steps.begin(), folded.steps.end(), [](const driver::Explanation::Step& step) {
        return step.pass == "fold-scales" && step.text == "its result replaces 'bn1'";
      }));
  EXPECT_EQ(folded.end_op, "conv");
  EXPECT_EQ(folded.group, "relu1");
  ASSERT_FALSE(folded.kernels.empty());
  EXPECT_TRUE(folded.kernels.back().name.ends_with(" conv1")) << folded.kernels.back().name;
}

TEST(Explain, SuggestsTheNearestName) {
  try {
    driver::explain(example(), "thre");
    FAIL() << "an unknown name went through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'three'?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon::explain_test
