#include "ir/text.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

namespace tenon::nests::nest_builder_test {
namespace {

// Rows of a token and of an image, then a sum of each row, in one fused group.
std::size_t nests_for_batch(const std::string& batch) {
  const std::string types = "t: f32[" + batch + ", 1, 64], x: f32[" + batch + ", 196, 64]";
  const Graph graph =
      parse_graph("graph (" + types + ") {\n  y = fused(t, x) group = graph (" + types +
                      ") {\n    c = concat(t, x) {axis = 1}\n    e = exp(c)\n"
                      "    s = reduce_sum(e) {axes = [2]}\n    return s\n  }\n"
                      "  return y\n}\n",
                  all_ops());
  return build_nests("y", node_exprs(graph, *graph.nodes_in_order().begin())).parts.size();
}

// The parts of a concat share only the batch with the rows after it. With few images the rows are
// the iterations that threads share.
TEST(NestBuilder, StagesAfterAConcatShareRowsInSmallBatches) {
  EXPECT_EQ(nests_for_batch("16"), 1U);
  EXPECT_GT(nests_for_batch("2"), 1U);
  EXPECT_EQ(nests_for_batch("N"), nests_for_batch("2"));
}

}  // namespace
}  // namespace tenon::nests::nest_builder_test
