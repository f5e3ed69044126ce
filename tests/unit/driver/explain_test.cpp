#include "base/error.h"
#include "driver/explain.h"
#include "ir/text.h"
#include "ops/registry.h"

#include <gtest/gtest.h>

namespace tenon {
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

TEST(Explain, TellsWhatBecameOfANode) {
  const Explanation folded = explain(example(), "three");
  EXPECT_EQ(folded.op, "add");
  ASSERT_FALSE(folded.steps.empty());
  EXPECT_EQ(folded.steps.front().pass, "fold-constants");
  EXPECT_EQ(folded.end_op, "constant");
}

TEST(Explain, NamesTheGroupANodeEndsIn) {
  const Explanation fused = explain(example(), "b");
  EXPECT_EQ(fused.type, "f32[4, 3]");
  EXPECT_EQ(fused.end_op, "add");
  EXPECT_EQ(fused.group, "y");
  EXPECT_NE(std::find(fused.members.begin(), fused.members.end(), "m (matmul)"),
            fused.members.end());
  EXPECT_TRUE(std::any_of(fused.steps.begin(), fused.steps.end(),
                          [](const Explanation::Step& step) { return step.pass == "fuse"; }));
}

TEST(Explain, TakesTheSourcesNameOfANode) { EXPECT_EQ(explain(example(), "product").name, "m"); }

TEST(Explain, OffersTheNearestName) {
  try {
    explain(example(), "thre");
    FAIL() << "an unknown name went through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'three'?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon
