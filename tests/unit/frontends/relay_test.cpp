#include "base/error.h"
#include "frontends/document.h"
#include "unit/frontends/mutation.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon {
namespace {

std::unique_ptr<Document> read(const std::string& text) {
  return find_document_format("relay")->read(text, "test");
}

std::map<std::string, int> op_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (NodeId id : graph.nodes_in_order()) ++counts[std::string(graph.op_name(id))];
  return counts;
}

TEST(RelayDocument, FixturesComeBackByteForByte) {
  for (const char* name : {"resnet50_v1.before.relay", "resnet50_v1.after.relay"}) {
    const std::string text = read_fixture(name);
    const auto document = read(text);
    EXPECT_EQ(document->text(""), text) << name;
    // Through the graph too: names, order of constants and the id are in it.
    EXPECT_EQ(find_document_format("relay")->from_graph(document->graph())->text(""), text) << name;
    const Findings findings = document->check();
    EXPECT_TRUE(findings.mismatches().empty()) << name;
  }
}

TEST(RelayDocument, CountsOfTheFixtures) {
  const auto before = op_counts(read(read_fixture("resnet50_v1.before.relay"))->graph());
  EXPECT_EQ(before, (std::map<std::string, int>{{"add", 70},
                                                {"constant", 108},
                                                {"conv", 54},
                                                {"max_pool", 4},
                                                {"pad", 1},
                                                {"reduce_mean", 1},
                                                {"relu", 49}}));
  auto after = op_counts(read(read_fixture("resnet50_v1.after.relay"))->graph());
  EXPECT_EQ(after["cast_hint"], 86);
  EXPECT_EQ(after["stop_fusion"], 86);
}

}  // namespace
}  // namespace tenon
