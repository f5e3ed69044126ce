#include "expr/fused_groups.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "memory/liveness.h"
#include "memory/window.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/needs_documents.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

namespace tenon::order_test {
namespace {

using memory::live_peak;
using memory::LivePeak;
using memory::peak_bytes;
using memory::Sequence;
using memory::Tasks;

Tasks tasks_of(const Graph& graph) { return Tasks(memory::liveness_problem(graph)); }

Graph run_order(Graph graph) {
  Graph ordered = passes::find_pass("order").run(std::move(graph), {});
  verify(ordered);
  return ordered;
}

// Values of very different sizes: matrices, their sums, and broadcasts of the sums.
Graph random_graph(std::uint32_t seed, int node_count) {
  std::mt19937 random(seed);
  Graph graph("random");
  std::vector<ValueId> vectors = {graph.add_input("x", TensorType{DType::F32, {Dim(8)}, {}})};
  std::vector<ValueId> matrices;
  const auto pick = [&](const std::vector<ValueId>& from) { return from[random() % from.size()]; };
  for (int k = 0; k < node_count; ++k) {
    Graph::NewNode node;
    const bool widens = matrices.empty() || random() % 3 == 0;
    const auto kind = random() % 3;
    const bool gives_matrix = widens || kind == 0;
    if (widens) {
      node.op = &find_op("expand");
      node.operands = {pick(vectors)};
      node.attrs.set("shape", Dims{Dim(4), Dim(8)});
    } else if (kind == 0) {
      node.op = &find_op("add");
      node.operands = {pick(matrices), pick(matrices)};
    } else {
      node.op = &find_op("reduce_sum");
      node.operands = {pick(matrices)};
      node.attrs.set("axes", Dims{Dim(0)});
      node.attrs.set("keep_axes", false);
    }
    const ValueId made = graph.node(graph.add_node(std::move(node))).results.front();
    (gives_matrix ? matrices : vectors).push_back(made);
  }
  for (NodeId id : graph.nodes_in_order()) {
    const ValueId made = graph.node(id).results.front();
    if (graph.readers(made).empty()) graph.add_output(made);
  }
  return graph;
}

// The minimum peak over all orders, by exhaustive search.
std::int64_t best_peak(const Tasks& tasks) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  Sequence sequence;
  for (std::uint32_t task = 0; task < tasks.size(); ++task) sequence.push_back(task);
  do {
    std::vector<bool> is_done(sequence.size(), false);
    bool is_valid = true;
    for (std::uint32_t task : sequence) {
      for (std::uint32_t need : tasks.needs[task]) is_valid = is_valid && is_done[need];
      if (!is_valid) break;
      is_done[task] = true;
    }
    if (is_valid) best = std::min(best, peak_bytes(tasks, sequence));
  } while (std::ranges::next_permutation(sequence).found);
  return best;
}

// Sixteen symbols with one size hint each: the bytes overflow an integer.
TEST(Order, ValuesWithManySymbols) {
  std::string dims;
  for (char symbol = 'A'; symbol <= 'P'; ++symbol)
    dims += std::string(dims.empty() ? "" : ", ") + symbol;
  const Graph graph =
      parse_graph("graph (x: f32[" + dims + "]) { y = relu(x) z = neg(y) return y, z }", all_ops());
  const Tasks tasks = tasks_of(graph);
  for (const Tasks::ScheduledValue& value : tasks.values) EXPECT_GT(value.bytes, 0);
  EXPECT_GE(peak_bytes(tasks, {0, 1}), tasks.values[0].bytes + tasks.values[1].bytes);
  EXPECT_EQ(print(run_order(graph)), print(graph));
}

TEST(Order, OptimalForSmallGraphs) {
  int improved = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Graph graph = random_graph(seed, 8);
    const std::int64_t before = live_peak(graph).peak_bytes;
    const std::int64_t after = live_peak(run_order(graph)).peak_bytes;
    EXPECT_EQ(after, best_peak(tasks_of(graph))) << print(graph);
    improved += after < before;
  }
  EXPECT_GT(improved, 10);
}

TEST(Order, NeverWorseAndKeepsResults) {
  int improved = 0;
  for (std::uint32_t seed = 100; seed < 200; ++seed) {
    const Graph graph = random_graph(seed, 60);
    const Graph ordered = run_order(graph);
    const std::int64_t before = live_peak(graph).peak_bytes, after = live_peak(ordered).peak_bytes;
    EXPECT_LE(after, before);
    improved += after < before;
    const std::vector<Datum> inputs = models::random_inputs(graph, seed);
    const std::vector<Datum> expected = reference::evaluate(graph, inputs);
    const std::vector<Datum> actual = reference::evaluate(ordered, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(compare(actual[k], expected[k], testing::Tolerance{0, 0}).is_equal);
      EXPECT_EQ(ordered.value(ordered.outputs()[k]).name, graph.value(graph.outputs()[k]).name);
    }
  }
  EXPECT_GT(improved, 90);
}

// Each scheduling method gives every node once, after its operands; peaks agree with the graph's
// own.
TEST(Order, EveryMethodIsTopological) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = random_graph(seed, 50);
    const Tasks tasks = tasks_of(graph);
    for (const Sequence& sequence :
         {memory::least_growth(tasks), memory::least_growth_backwards(tasks),
          memory::deepest_need_first(tasks),
          memory::with_best_windows(tasks, memory::least_growth(tasks))}) {
      ASSERT_EQ(sequence.size(), tasks.size());
      const std::vector<NodeId> running = memory::running_nodes(graph);
      std::vector<bool> is_done(sequence.size(), false);
      std::vector<NodeId> nodes;
      for (std::uint32_t task : sequence) {
        for (std::uint32_t need : tasks.needs[task]) EXPECT_TRUE(is_done[need]);
        EXPECT_FALSE(is_done[task]);
        is_done[task] = true;
        nodes.push_back(running[task]);
      }
      EXPECT_EQ(peak_bytes(tasks, sequence), live_peak(graph, nodes).peak_bytes);
    }
  }
}

TEST(LivePeak, NamesLiveValues) {
  const Graph graph = parse_graph(R"(graph (x: f32[4]) {
    k = constant f32[1024] splat 1
    a = expand(x) {shape = [3, 4]}
    b = relu(a)
    c = add(a, b)
    d = exp(x)
    y = reduce_sum(c) {axes = [0]}
    return y, d
  })",
                                  all_ops());
  const LivePeak peak = live_peak(graph);
  EXPECT_EQ(peak.bytes, (std::vector<std::int64_t>{48, 96, 144, 64, 80}));
  EXPECT_EQ(peak.peak_bytes, 144);
  EXPECT_EQ(graph.location(peak.node), "node 'c' (add)");
  std::string alive;
  for (ValueId value : peak.alive) alive += graph.value(value).name;
  EXPECT_EQ(alive, "abc");
  EXPECT_TRUE(peak.is_exact);
}

TEST(LivePeak, CountsOutputsToTheEndAndBodiesWhileTheyRun) {
  const Graph graph = parse_graph(R"(graph (c: bool[], x: f32[4]) {
    a = exp(x)
    b = if(c, x) then = graph (x: f32[4]) {
      s = expand(x) {shape = [10, 4]}
      t = reduce_sum(s) {axes = [0], keep_axes = false}
      return t
    } else = graph (x: f32[4]) {
      return x
    }
    y = relu(b)
    return a, y
  })",
                                  all_ops());
  EXPECT_EQ(live_peak(graph).bytes, (std::vector<std::int64_t>{16, 16 + 16 + 176, 48}));
}

constexpr const char* kProfile = "tests/fixtures/megengine_resnet50.profile.json";

// The operator's id at the end of a node's name: "conv(…)[557]".
std::int64_t operator_id(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string& name = node.name.empty() ? graph.value(node.results.front()).name : node.name;
  return std::stoll(name.substr(name.rfind('[') + 1));
}

// The nodes of one operator are adjacent and count once.
std::vector<std::int64_t> operator_ids(const Graph& graph) {
  std::vector<std::int64_t> ids;
  for (NodeId id : graph.nodes_in_order()) {
    const std::int64_t next = operator_id(graph, id);
    if (ids.empty() || ids.back() != next) ids.push_back(next);
  }
  return ids;
}

// Recovers the document's own sequence from another order of the same graph.
TEST(OrderAsMegengine, ReproducesTheDocument) {
  NEEDS_DOCUMENTS();
  const Graph document = models::load_model(kProfile);
  const std::vector<std::int64_t> expected = operator_ids(document);
  std::ifstream stream(kProfile, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  std::vector<std::int64_t> executed;
  const nlohmann::json profile = nlohmann::json::parse(text);
  for (const auto& id : profile["graph_exec"]["comp_seq"]) {
    const std::int64_t number = std::stoll(id.get<std::string>());
    if (std::ranges::find(expected, number) != expected.end()) executed.push_back(number);
  }
  EXPECT_EQ(executed.size(), 232u);  // of 234: input and output callbacks are not nodes
  EXPECT_EQ(expected, executed);
  Graph shuffled = passes::find_pass("fuse").run(document, {});
  inline_groups(shuffled);
  EXPECT_NE(operator_ids(shuffled), expected);
  passes::PassOptions options;
  passes::set_option(options, "order.mode=megengine");
  EXPECT_EQ(operator_ids(passes::find_pass("order").run(shuffled, options)), expected);
}

// From the addresses in the document: three tensors of 32,112,640 bytes at an add.
TEST(LivePeak, MatchesTheMegengineDocument) {
  NEEDS_DOCUMENTS();
  const Graph graph = models::load_model(kProfile);
  const LivePeak peak = live_peak(graph);
  EXPECT_EQ(peak.peak_bytes, 96'337'920);
  EXPECT_EQ(peak.alive.size(), 3u);
  EXPECT_EQ(operator_id(graph, peak.node), 563);
  const Graph fused = passes::find_pass("fuse").run(graph, {});
  EXPECT_EQ(live_peak(fused).peak_bytes, 72'253'440);
}

TEST(Order, ZooNetworks) {
  for (const char* spec : {"resnet18", "squeezenet", "unet256", "densenet121", "gpt2?seq=4"}) {
    const Graph graph = zoo::build(spec);
    EXPECT_LE(live_peak(run_order(graph)).peak_bytes, live_peak(graph).peak_bytes) << spec;
  }
}

}  // namespace
}  // namespace tenon::order_test
