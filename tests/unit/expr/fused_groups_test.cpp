#include "expr/fused_groups.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::fused_groups_test {
namespace {

// Nested groups, a duplicate output, and an input as an output.
constexpr const char* kNested = R"(graph (x: f32[2], b: f32[2]) {
  s, again, same, y = fused(x, b)
    group = graph (p: f32[2], q: f32[2]) {
      t = add(p, q)
      x = fused(t)
        group = graph (v: f32[2]) {
          w = relu(v)
          return w
        }
      return t, t, p, x
    }
  return s, again, same, y
}
)";

TEST(FusedGroups, InliningKeepsResults) {
  const Graph grouped = parse_graph(kNested, all_ops());
  Graph flat = grouped;
  EXPECT_TRUE(has_groups(flat));
  inline_groups(flat);
  EXPECT_FALSE(has_groups(flat));
  EXPECT_EQ(flat.node_count(), 2u);
  const Tensor x = Tensor::of(DType::F32, {2}, std::vector<double>{1, -3});
  const Tensor b = Tensor::of(DType::F32, {2}, std::vector<double>{1, 1});
  const std::vector<Datum> before = reference::evaluate(grouped, {x, b});
  const std::vector<Datum> after = reference::evaluate(flat, {x, b});
  ASSERT_EQ(before.size(), 4u);
  ASSERT_EQ(after.size(), 4u);
  for (std::size_t k = 0; k < after.size(); ++k) {
    EXPECT_EQ(before[k].tensor().reals(), after[k].tensor().reals());
  }
  EXPECT_EQ(after[3].tensor().reals(), (std::vector<double>{2, 0}));
}

TEST(FusedGroups, ResultsKeepTheirNames) {
  Graph flat = parse_graph(kNested, all_ops());
  inline_groups(flat);
  EXPECT_EQ(flat.value(flat.outputs()[0]).name, "s");
  EXPECT_EQ(flat.value(flat.outputs()[2]).name, "x");
  EXPECT_EQ(flat.value(flat.outputs()[3]).name, "y");
}

}  // namespace
}  // namespace tenon::fused_groups_test
