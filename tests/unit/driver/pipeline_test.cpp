#include "base/error.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "testing/verify/pass_check.h"
#include "testing/verify/reduce.h"
#include "unit/error_text.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

namespace tenon::pipeline_test {
namespace {

// x - x -> 0: wrong for NaN and infinite x.
Graph difference_is_zero(Graph graph, const passes::PassOptions&) {
  for (NodeId id : graph.nodes_in_order()) {
    const Node node = graph.node(id);
    if (node.op->name != "sub" || node.operands[0] != node.operands[1]) continue;
    const Type& type = graph.value(node.results[0]).type;
    if (!type.is_tensor() || !all_constant(type.tensor().dims)) continue;
    Graph::NewNode zero{&find_op("constant"), {}, {}, {}, {""}, ""};
    zero.attrs.set("value", Constant(Tensor(type.tensor().dtype, constants(type.tensor().dims))));
    const ValueId placed = graph.node(graph.add_node(std::move(zero), id)).results[0];
    graph.replace_uses(node.results[0], placed);
    graph.swap_names(node.results[0], placed);
    graph.erase(id);
  }
  return graph;
}

// Swaps the operands of every division that follows an add.
Graph swaps_quotients(Graph graph, const passes::PassOptions&) {
  for (NodeId id : graph.nodes_in_order()) {
    const Node node = graph.node(id);
    if (node.op->name != "div") continue;
    const NodeId producer = graph.value(node.operands[0]).producer;
    if (!producer || graph.op_name(producer) != "add") continue;
    graph.set_operand(id, 0, node.operands[1]);
    graph.set_operand(id, 1, node.operands[0]);
  }
  return graph;
}

Graph drops_outputs(Graph graph, const passes::PassOptions&) {
  graph.set_outputs({graph.outputs().front()});
  return graph;
}

Graph always_fails(Graph graph, const passes::PassOptions&) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) == "tanh") throw Error("no tanh, please");
  }
  return graph;
}

// Reassociates products: within tolerance, but not exact.
Graph reassociates(Graph graph, const passes::PassOptions&) {
  for (NodeId id : graph.nodes_in_order()) {
    const Node node = graph.node(id);
    if (node.op->name != "mul") continue;
    const NodeId inner = graph.value(node.operands[0]).producer;
    if (!inner || graph.op_name(inner) != "mul") continue;
    const std::vector<ValueId> factors = graph.node(inner).operands;
    Graph::NewNode right{&find_op("mul"), {factors[1], node.operands[1]}, {}, {}, {""}, ""};
    const ValueId product = graph.node(graph.add_node(std::move(right), id)).results[0];
    graph.set_operand(id, 0, factors[0]);
    graph.set_operand(id, 1, product);
  }
  graph.erase_dead();
  return graph;
}

constexpr const char* kGraph = R"(graph (x: f32[2, 4], w: f32[4, 3], c: f32[3]) {
  a = matmul(x, w)
  b = add(a, c)
  d = tanh(b)
  one = constant f32[] 1
  e = add(d, one)
  f = sub(e, e)
  g = relu(f)
  h = div(e, c)
  i = add(g, c)
  j = softmax(i)
  k = mul(h, c)
  l = mul(k, d)
  return j, l
})";

std::string error_of(const passes::Pass& pass, const char* text = kGraph) {
  driver::PipelineOptions options;
  options.verify_each = true;
  options.thread_count = 1;
  const std::vector<passes::Pass> passes = {
      {"first", [](Graph graph, const passes::PassOptions&) { return graph; }}, pass};
  return error_text([&] { driver::run_passes(parse_graph(text, all_ops()), passes, options); });
}

// Parses the graph in a message: from its first line to the closing brace.
Graph reproduction_in(const std::string& message) {
  const std::size_t begin = message.find("\ngraph ");
  const std::size_t end = message.find("\n}", begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return parse_graph(message.substr(begin, end + 2 - begin), all_ops());
}

TEST(VerifyEach, NamesThePassThatChangesAResult) {
  const std::string message = error_of({"difference-is-zero", difference_is_zero});
  EXPECT_NE(message.find("pass 'difference-is-zero' changes a result"), std::string::npos)
      << message;
  const Graph smallest = reproduction_in(message);
  ASSERT_EQ(smallest.node_count(), 1u) << message;
  EXPECT_EQ(smallest.op_name(smallest.first()), "sub");
}

TEST(VerifyEach, PrintsASmallReproductionWithInputs) {
  const std::string message = error_of({"swaps-quotients", swaps_quotients});
  EXPECT_NE(message.find("pass 'swaps-quotients' changes a result"), std::string::npos) << message;
  const Graph smallest = reproduction_in(message);
  EXPECT_GE(smallest.node_count(), 2u) << message;
  EXPECT_LE(smallest.node_count(), 3u) << message;
  for (ValueId input : smallest.inputs()) {
    EXPECT_NE(message.find("# " + smallest.value(input).name + " = f32["), std::string::npos)
        << message;
  }
}

TEST(VerifyEach, ReducesARealNetworkToAFewNodes) {
  driver::PipelineOptions options;
  options.verify_each = true;
  options.verify_trials = 1;
  const passes::Pass pass{"skips-norms", [](Graph graph, const passes::PassOptions&) {
                            for (NodeId id : graph.nodes_in_order()) {
                              if (graph.op_name(id) != "relu") continue;
                              const NodeId producer =
                                  graph.value(graph.node(id).operands[0]).producer;
                              if (!producer || graph.op_name(producer) != "batch_norm") continue;
                              graph.set_operand(id, 0, graph.node(producer).operands[0]);
                            }
                            graph.erase_dead();
                            return graph;
                          }};
  try {
    driver::run_passes(zoo::build("unet256?size=32,width=2"), std::span(&pass, 1), options);
    FAIL() << "a broken pass went through";
  } catch (const Error& error) {
    const Graph smallest = reproduction_in(error.what());
    EXPECT_GE(smallest.node_count(), 2u) << error.what();
    EXPECT_LE(smallest.node_count(), 5u) << error.what();
  }
}

TEST(VerifyEach, DetectsAChangedInterface) {
  const std::string message = error_of({"drops-outputs", drops_outputs});
  EXPECT_NE(message.find("pass 'drops-outputs' changes the graph's inputs or outputs"),
            std::string::npos);
  EXPECT_NE(message.find("j instead of j, l"), std::string::npos) << message;
}

TEST(VerifyEach, ReducesTheGraphOnWhichAPassFails) {
  const std::string message = error_of({"always-fails", always_fails});
  EXPECT_NE(message.find("pass 'always-fails' fails"), std::string::npos) << message;
  EXPECT_EQ(reproduction_in(message).node_count(), 1u) << message;
}

TEST(VerifyEach, AcceptsRoundingUnlessThePassIsExact) {
  const char* products = R"(graph (x: f32[64], y: f32[64], z: f32[64]) {
    a = mul(x, y)
    b = mul(a, z)
    return b
  })";
  EXPECT_EQ(error_of({"reassociates", reassociates}, products), "no error");
  EXPECT_NE(error_of({"reassociates", reassociates, passes::Accuracy::Exact}, products),
            "no error");
}

// If rounding decides the result of floor, either answer is right; a wrong result elsewhere is not.
TEST(VerifyEach, MeasuresSensitivityToRounding) {
  const char* steps = R"(graph (x: f32[64]) {
    third = constant f32[] 0.33333334
    three = constant f32[] 3
    a = mul(x, third)
    b = mul(a, three)
    n = floor(b)
    return n
  })";
  EXPECT_EQ(error_of({"reassociates", reassociates}, steps), "no error");
}

TEST(Pipeline, RefusesUnknownPasses) {
  driver::PipelineOptions options;
  options.passes = {"fold-constant"};
  try {
    driver::chosen_passes(options);
    FAIL() << "an unknown pass went through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'fold-constants'?"), std::string::npos)
        << error.what();
  }
  options.passes = {"fold-constants"};
  options.stop_after = "fuze";
  EXPECT_THROW(driver::chosen_passes(options), Error);
  options.stop_after.clear();
  options.without = {"fold-constants"};
  EXPECT_TRUE(driver::chosen_passes(options).empty());
}

TEST(Pipeline, ReportsChangesOfEachPass) {
  driver::PipelineOptions options;
  options.passes = {"fold-constants", "fold-constants"};
  std::vector<driver::PassReport> reports;
  options.on_pass = [&](const driver::PassReport& report, const Graph&) {
    reports.push_back(report);
  };
  driver::run_pipeline(parse_graph(R"(graph (x: f32[2]) {
    a = constant f32[] 1
    b = constant f32[] 2
    c = add(a, b)
    y = mul(x, c)
    return y
  })",
                                   all_ops()),
                       options);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].nodes_before, 4u);
  EXPECT_EQ(reports[0].nodes_after, 2u);
  EXPECT_EQ(reports[0].change, "add -1, constant -1");
  EXPECT_EQ(reports[1].change, "nothing");
}

}  // namespace
}  // namespace tenon::pipeline_test
