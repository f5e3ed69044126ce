#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::zoo_test {
namespace {

// Weights, without statistics of batch norms, scalars and masks.
bool is_trained(const Graph& graph, NodeId id) {
  const ValueId value = graph.node(id).results[0];
  const Constant& constant = *graph.constant_of(value);
  if (constant.shape().empty() || !is_float(constant.dtype())) return false;
  const std::vector<NodeId>& readers = graph.readers(value);
  return std::ranges::none_of(readers, [&](NodeId reader) {
    const std::vector<ValueId>& operands = graph.node(reader).operands;
    return graph.op_name(reader) == "batch_norm" && (operands[3] == value || operands[4] == value);
  });
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "constant" || !is_trained(graph, id)) continue;
    count += graph.constant_of(graph.node(id).results[0])->size();
  }
  return count;
}

std::string type_of(const Graph& graph, std::string_view value) {
  const ValueId id = graph.find(value);
  return id ? to_string(graph.value(id).type) : concat("no value is called ", value);
}

std::string output_type(const Graph& graph) {
  return to_string(graph.value(graph.outputs().front()).type);
}

std::string message(std::string_view spec) {
  try {
    zoo::build(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    return error.what();
  }
  return "no error";
}

std::size_t count_of(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (NodeId id : graph.nodes_in_order()) count += graph.op_name(id) == op;
  return count;
}

struct Published {
  const char* spec;
  std::int64_t parameters;
  const char* output;
};

class ZooNetwork : public ::testing::TestWithParam<Published> {};

TEST_P(ZooNetwork, HasThePublishedSize) {
  const Graph graph = zoo::build(GetParam().spec);
  EXPECT_EQ(parameter_count(graph), GetParam().parameters);
  EXPECT_EQ(output_type(graph), GetParam().output);
}

TEST_P(ZooNetwork, TextRoundTrip) {
  const Graph graph = zoo::build(GetParam().spec);
  verify(graph);
  EXPECT_TRUE(identical(graph, parse_graph(print(graph), all_ops())));
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ZooNetwork,
    ::testing::Values(Published{"resnet18", 11'689'512, "f32[1, 1000]"},
                      Published{"resnet18?layout=NHWC,batch=2", 11'689'512, "f32[2, 1000]"},
                      Published{"resnet50", 25'557'032, "f32[1, 1000]"},
                      Published{"resnet50?layout=NHWC", 25'557'032, "f32[1, 1000]"},
                      // Biases in place of batch norms; 64 kernels of 7x7 read a fourth channel.
                      Published{"resnet50?form=v1,layout=NHWC", 25'533'608,
                                "f32[1, 1, 1, 1000]@NHWC"},
                      Published{"resnet50?form=v1,classes=10", 23'505'098, "f32[1, 10, 1, 1]"},
                      Published{"alexnet?batch=128", 2'469'696, "f32[128, 6, 6, 256]@NHWC"},
                      Published{"alexnet?form=torch", 61'100'840, "f32[1, 1000]"},
                      Published{"vgg16", 138'357'544, "f32[1, 1000]"},
                      Published{"mobilenet_v2", 3'504'872, "f32[1, 1000]"},
                      Published{"unet572?batch=8", 31'100'354, "f32[8, 2, 388, 388]"},
                      Published{"unet572?form=paper", 31'030'658, "f32[1, 2, 388, 388]"},
                      Published{"unet572?loss=1,dropout=1", 31'100'354, "f32[]"},
                      Published{"unet256", 7'763'074, "f32[1, 2, 256, 256]"},
                      Published{"squeezenet", 1'235'496, "f32[1, 1000]"},
                      Published{"densenet121", 7'978'856, "f32[1, 1000]"},
                      Published{"bert_base", 108'891'648, "f32[1, 128, 768]"},
                      Published{"bert_base?pooler=1,seq=S", 109'482'240, "f32[1, S, 768]"},
                      Published{"gpt2", 124'439'808, "f32[1, 128, 50257]"},
                      Published{"gpt2?seq=1,past=512", 124'439'808, "f32[1, 1, 50257]"},
                      Published{"gpt2?batch=N,seq=S,past=P", 124'439'808, "f32[N, S, 50257]"},
                      Published{"vit_b16", 86'567'656, "f32[1, 1000]"},
                      Published{"lstm", 1'576'960, "f32[64, 1, 512]"},
                      Published{"lstm?batch=N,seq=S", 1'576'960, "f32[S, N, 512]"},
                      Published{"mlp", 669'706, "f32[1, 10]"}),
    [](const ::testing::TestParamInfo<Published>& test) {
      std::string name = test.param.spec;
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// The batch is the first extent of the first input, except for the sequence of an lstm.
TEST(Zoo, SymbolicBatch) {
  for (const zoo::Network& network : zoo::networks()) {
    const Graph graph = zoo::build(network.name + "?batch=N");
    const std::size_t axis = network.name == "lstm" ? 1 : 0;
    for (const ValueId id : {graph.inputs().front(), graph.outputs().front()}) {
      EXPECT_EQ(to_string(graph.value(id).type.tensor().dims.at(axis)), "N") << network.name;
    }
  }
}

TEST(Zoo, ElementTypes) {
  for (const zoo::Network& network : zoo::networks()) {
    const Graph graph = zoo::build(network.name + "?dtype=f16");
    EXPECT_TRUE(output_type(graph).starts_with("f16")) << network.name;
  }
}

TEST(Zoo, ListsItsNetworks) {
  std::string names;
  for (const zoo::Network& network : zoo::networks()) {
    names += network.name + " ";
    EXPECT_FALSE(network.summary.empty());
    for (const zoo::Parameter& parameter : network.parameters) {
      EXPECT_FALSE(parameter.summary.empty()) << network.name << " " << parameter.name;
      // The default is accepted as an explicit value.
      zoo::build(concat(network.name, "?", parameter.name, "=", parameter.default_value));
    }
  }
  EXPECT_EQ(names,
            "resnet18 resnet50 alexnet vgg16 mobilenet_v2 unet572 unet256 squeezenet densenet121 "
            "bert_base gpt2 vit_b16 lstm mlp ");
}

TEST(Zoo, WeightsAreReproducible) {
  const Graph a = zoo::build("mlp"), b = zoo::build("mlp");
  EXPECT_TRUE(identical(a, b));
  EXPECT_FALSE(
      identical(*a.constant_of(a.find("fc2.weight")), *a.constant_of(a.find("fc3.weight"))));
}

Tensor random_input(const TensorType& type) {
  return Constant::normal(type.dtype, constants(type.dims), 1, 0, 1).materialise();
}

// Small images keep the reference quick; weights are those of the large ones.
TEST(Zoo, OutputsAreOfOrderOne) {
  for (const char* spec : {"mlp?batch=4", "lstm?seq=4,hidden=64", "resnet18?size=32",
                           "mobilenet_v2?size=32", "squeezenet?size=64", "densenet121?size=32",
                           "unet256?size=16,width=8", "alexnet?size=63"}) {
    const Graph graph = zoo::build(spec);
    const Tensor input = random_input(graph.value(graph.inputs().front()).type.tensor());
    const Tensor output = reference::evaluate(graph, {Datum(input)}).front().tensor();
    double squares = 0;
    for (const double element : output.reals()) squares += element * element;
    const double root_mean_square = std::sqrt(squares / static_cast<double>(output.size()));
    EXPECT_GT(root_mean_square, 0.03) << spec;
    EXPECT_LT(root_mean_square, 10) << spec;  // false for NaN
  }
}

// Sizes of the document: 224 -> 56 -> 27 -> 13 -> 6, weights as in TensorFlow.
TEST(Zoo, AlexnetMatchesTheTensorFlowBenchmark) {
  const Graph graph = zoo::build("alexnet?batch=128");
  EXPECT_EQ(type_of(graph, "Variable"), "f32[128, 224, 224, 3]@NHWC");
  EXPECT_EQ(type_of(graph, "conv1/weights"), "f32[11, 11, 3, 64]@HWIO");
  EXPECT_EQ(type_of(graph, "conv1/biases"), "f32[64]");
  EXPECT_EQ(type_of(graph, "conv1/Conv2D"), "f32[128, 56, 56, 64]@NHWC");
  EXPECT_EQ(type_of(graph, "lrn1/LRN"), "f32[128, 56, 56, 64]@NHWC");
  EXPECT_EQ(type_of(graph, "pool1"), "f32[128, 27, 27, 64]@NHWC");
  EXPECT_EQ(type_of(graph, "conv2/weights"), "f32[5, 5, 64, 192]@HWIO");
  EXPECT_EQ(type_of(graph, "pool2"), "f32[128, 13, 13, 192]@NHWC");
  EXPECT_EQ(type_of(graph, "conv5"), "f32[128, 13, 13, 256]@NHWC");
  EXPECT_EQ(type_of(graph, "pool5"), "f32[128, 6, 6, 256]@NHWC");
}

// The document's counts of functions, and its names and bytes of parameters.
TEST(Zoo, Unet572MatchesTheChainerGraph) {
  const Graph graph = zoo::build("unet572?batch=8,loss=1,dropout=1");
  EXPECT_EQ(count_of(graph, "conv"), 19u);
  EXPECT_EQ(count_of(graph, "conv_transpose"), 4u);
  EXPECT_EQ(count_of(graph, "relu"), 22u);
  EXPECT_EQ(count_of(graph, "max_pool"), 4u);
  EXPECT_EQ(count_of(graph, "slice"), 4u);
  EXPECT_EQ(count_of(graph, "concat"), 4u);
  EXPECT_EQ(count_of(graph, "dropout"), 2u);
  EXPECT_EQ(type_of(graph, "/conv_d0a_b/W"), "f32[64, 1, 3, 3]");
  EXPECT_EQ(type_of(graph, "/conv_d4b_c/b"), "f32[1024]");
  EXPECT_EQ(type_of(graph, "/upconv_d4c_u3a/W"), "f32[1024, 512, 2, 2]");
  EXPECT_EQ(type_of(graph, "/upconv_u3d_u2a/W"), "f32[512, 256, 2, 2]");
  EXPECT_EQ(type_of(graph, "/upconv_u1d_u0a/W"), "f32[128, 128, 2, 2]");
  EXPECT_EQ(type_of(graph, "/conv_u0b_c/W"), "f32[64, 192, 3, 3]");
  EXPECT_EQ(type_of(graph, "/conv_u0d_score/W"), "f32[2, 64, 1, 1]");
  EXPECT_EQ(type_of(graph, "d0c_cropped"), "f32[8, 64, 392, 392]");
  EXPECT_EQ(type_of(graph, "u0b"), "f32[8, 192, 392, 392]");
  EXPECT_EQ(type_of(graph, "labels"), "i32[8, 388, 388]");
}

// The document's order of nodes, except for constants.
TEST(Zoo, Resnet50V1MatchesTheRelayModule) {
  const Graph graph = zoo::build("resnet50?form=v1,layout=NHWC,batch=32");
  std::string ops;
  std::size_t count = 0;
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) == "constant") continue;
    if (count++ < 38) ops += std::string(graph.op_name(id)) + " ";
  }
  EXPECT_EQ(count, 179u);
  EXPECT_EQ(ops,
            "pad conv add relu max_pool "
            "conv conv add relu conv add relu conv add add add relu "
            "conv add relu conv add relu conv add add relu "
            "conv add relu conv add relu conv max_pool add add relu ");
  const std::string unit = "resnet_v1_50/block1/unit_3/bottleneck_v1";
  EXPECT_EQ(type_of(graph, "resnet_v1_50/conv1/weights"), "f32[7, 7, 4, 64]@HWIO");
  EXPECT_EQ(type_of(graph, "resnet_v1_50/pool1/MaxPool"), "f32[32, 56, 56, 64]@NHWC");
  EXPECT_EQ(type_of(graph, unit + "/conv2/weights"), "f32[3, 3, 64, 64]@HWIO");
  EXPECT_EQ(type_of(graph, unit + "/conv2/Conv2D"), "f32[32, 28, 28, 64]@NHWC");
  EXPECT_EQ(type_of(graph, unit + "/shortcut/MaxPool"), "f32[32, 28, 28, 256]@NHWC");
  EXPECT_EQ(type_of(graph, "resnet_v1_50/pool5"), "f32[32, 1, 1, 2048]@NHWC");
  EXPECT_EQ(type_of(graph, "resnet_v1_50/logits/BiasAdd"), "f32[32, 1, 1, 1000]@NHWC");
}

TEST(Zoo, SuggestsTheNearestName) {
  EXPECT_EQ(message("resnet5"),
            "zoo has no network 'resnet5'\n  hint      did you mean 'resnet50'?");
  EXPECT_EQ(message("resnet50?bach=4"),
            "zoo:resnet50 has no parameter 'bach'\n  hint      did you mean 'batch'?");
}

TEST(Zoo, RefusesInvalidParameters) {
  EXPECT_EQ(message("mlp?batch=0"),
            "zoo:mlp: parameter 'batch' cannot be '0'\n"
            "  expected  a number from 1, or a symbol such as N");
  EXPECT_EQ(message("mlp?batch=3x"),
            "zoo:mlp: parameter 'batch' cannot be '3x'\n"
            "  expected  a number from 1, or a symbol such as N");
  EXPECT_EQ(message("resnet50?layout=NCWH"),
            "zoo:resnet50: parameter 'layout' cannot be 'NCWH'\n"
            "  expected  one of NCHW, NHWC");
  EXPECT_EQ(message("vgg16?size=8"),
            "zoo:vgg16: parameter 'size' cannot be '8'\n"
            "  expected  a number from 32 to 16384");
  EXPECT_EQ(message("unet572?size=570"),
            "zoo:unet572: parameter 'size' cannot be '570'\n"
            "  expected  16*k + 12, from 188 on");
  EXPECT_EQ(message("gpt2?seq=1025"),
            "zoo:gpt2: parameter 'seq' cannot be '1025'\n"
            "  expected  at most 1024, or a symbol such as S");
  EXPECT_EQ(message("mlp?batch"),
            "zoo:mlp: parameter 'batch' has no value\n  expected  batch=VALUE");
  EXPECT_EQ(message("mlp?batch=1,batch=2"), "zoo:mlp: parameter 'batch' is given twice");
}

}  // namespace
}  // namespace tenon::zoo_test
