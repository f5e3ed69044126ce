#include "base/error.h"
#include "driver/zoo/zoo.h"
#include "frontends/document.h"
#include "ir/text.h"
#include "unit/frontends/mutation.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon {
namespace {

const DocumentFormat& format() { return *find_document_format("aitemplate"); }

std::unique_ptr<Document> read(const std::string& text) { return format().read(text, "dump"); }

const std::string kGolden = "aitemplate_conv_add.graph.txt";

// ---- the document ----

TEST(AITemplate, GoldenFileComesBackByteForByte) {
  const std::string text = read_fixture(kGolden);
  EXPECT_TRUE(format().recognises(text.substr(0, 4096)));
  EXPECT_EQ(read(text)->text(""), text);
}

TEST(AITemplate, GoldenFileComesOutOfItsGraph) {
  const std::string text = read_fixture(kGolden);
  EXPECT_EQ(format().from_graph(read(text)->graph())->text(""), text);
}

TEST(AITemplate, GoldenGraphIsConvolutionAndSum) {
  EXPECT_EQ(print(read(read_fixture(kGolden))->graph()),
            "graph (input_0: f16[1, 28, 28, 128]@NHWC, input_1: f16[256, 3, 3, 128]@OHWI, "
            "bias: f16[1, 26, 26, 256]) {\n"
            "  metadata \"aitemplate dim batch_dim\" = \"1 at input_0[0] bias[0]\"\n"
            "  conv2d_0_0 = conv(input_0, input_1)\n"
            "  output_0 = add(bias, conv2d_0_0)\n"
            "  return output_0\n"
            "}\n");
}

// ---- any graph ----

// What a graph is made of, by the names of its values, whatever the order of nodes.
std::map<std::string, std::string> structure_of(const Graph& graph) {
  std::map<std::string, std::string> nodes;
  for (const ValueId id : graph.inputs())
    nodes[graph.value(id).name] = "input " + to_string(graph.value(id).type);
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      std::string text = concat(node.op->name, " ", k, " of (");
      for (const ValueId operand : node.operands)
        text += (operand ? graph.value(operand).name : "_") + ", ";
      nodes[graph.value(node.results[k]).name] =
          text + ") " + to_string(graph.value(node.results[k]).type);
    }
  }
  for (const ValueId id : graph.outputs()) nodes["output " + graph.value(id).name] = "";
  return nodes;
}

class AITemplateZoo : public testing::TestWithParam<const char*> {};

TEST_P(AITemplateZoo, ComesBackWithTheSameStructure) {
  const Graph graph = zoo::build(GetParam());
  const std::string text = format().from_graph(graph)->text("");
  const std::unique_ptr<Document> again = read(text);
  EXPECT_EQ(again->text(""), text);
  EXPECT_EQ(structure_of(again->graph()), structure_of(graph));
}

INSTANTIATE_TEST_SUITE_P(Networks, AITemplateZoo,
                         testing::Values("alexnet", "bert_base", "densenet121", "gpt2", "lstm",
                                         "mlp?batch=N", "mobilenet_v2", "resnet18?batch=N",
                                         "resnet50", "resnet50?layout=NHWC,batch=N",
                                         "resnet50?form=v1", "squeezenet", "unet256", "unet572",
                                         "vgg16", "vit_b16"));

}  // namespace
}  // namespace tenon
