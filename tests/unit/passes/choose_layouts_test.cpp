#include "base/error.h"
#include "driver/pipeline.h"
#include "expr/access.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "passes/choose_layouts/min_cut.h"
#include "passes/choose_layouts/mover.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "testing/random_graph/random_graph.h"
#include "unit/needs_documents.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tenon::choose_layouts_test {
namespace {

using namespace passes::layouts;

Graph parse(const std::string& text) { return parse_graph(text, all_ops()); }

Graph run_pass(Graph graph, std::vector<std::string> settings = {},
               passes::Remarks* remarks = nullptr) {
  passes::PassOptions options;
  options.remarks = remarks;
  for (const std::string& setting : settings) passes::set_option(options, setting);
  Graph after = passes::find_pass("choose-layouts").run(std::move(graph), options);
  verify(after);
  return after;
}

Graph after_passes(Graph graph, std::vector<std::string> passes) {
  driver::PipelineOptions options;
  options.passes = std::move(passes);
  return driver::run_pipeline(std::move(graph), options);
}

int count_of(const Graph& graph, std::string_view op) {
  int count = 0;
  for (NodeId id : graph.nodes_in_order()) count += graph.op_name(id) == op ? 1 : 0;
  return count;
}

struct Transposes {
  std::map<std::string, int> to;  // by layout
  double bytes = 0;               // read and written
};

Transposes transposes_of(const Graph& graph) {
  Transposes found;
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "transpose") continue;
    const Type& type = graph.value(graph.node(id).results[0]).type;
    ++found.to[type.tensor().layout.text()];
    found.bytes += 2 * size_hint_bytes(type);
  }
  return found;
}

using Counts = std::map<std::string, int>;

TEST(LayoutsOfAlexNet, TensorFlowLeavesEighteenTransposes) {
  const Graph graph = run_pass(models::load_model("tests/fixtures/alexnet_step.tenon"),
                               {"choose-layouts.mode=tensorflow"});
  const Transposes found = transposes_of(graph);
  EXPECT_EQ(found.to, (Counts{{"NCHW", 5}, {"NHWC", 13}}));
  EXPECT_NEAR(found.bytes / 1e9, 2.245, 0.0005);
}

TEST(LayoutsOfAlexNet, CostModelLeavesOneTranspose) {
  const Graph graph =
      run_pass(models::load_model("tests/fixtures/alexnet_step.tenon"), {"choose-layouts.to=NCHW"});
  const Transposes found = transposes_of(graph);
  EXPECT_EQ(found.to, (Counts{{"NCHW", 1}}));
  EXPECT_EQ(found.bytes, 128.0 * 224 * 224 * 3 * 4 * 2);
  EXPECT_EQ(count_of(graph, "reshape"), 5) << "one for each bias that is added";
}

TEST(LayoutsOfAlexNet, ChannelsLastIsUnchanged) {
  const Graph graph = models::load_model("tests/fixtures/alexnet_step.tenon");
  EXPECT_TRUE(identical(run_pass(graph), graph));
}

// The step as TensorFlow ran it contains transposes, which are recognised and removed.
TEST(LayoutsOfAlexNet, RemovesTransposesOfTheDocument) {
  NEEDS_DOCUMENTS();
  const Graph document = models::load_model("tests/fixtures/tensorscope_alexnet.nodes.txt");
  EXPECT_EQ(count_of(document, "transpose"), 18);
  const Graph graph = run_pass(document, {"choose-layouts.to=NCHW"});
  EXPECT_EQ(count_of(graph, "transpose"), 1);
}

TEST(LayoutsOfTheZoo, OneTransposeAtTheInput) {
  const Counts expected = {
      {"resnet18", 1},    {"resnet50", 1}, {"mobilenet_v2", 1}, {"squeezenet", 1},
      {"densenet121", 1}, {"vgg16", 2},     // and the operand of the fully connected layers
      {"unet256", 2},     {"unet572", 1}};  // and the output
  for (const auto& [name, count] : expected) {
    const Graph graph = after_passes(zoo::build(name),
                                     {"fold-constants", "simplify", "choose-layouts", "simplify"});
    EXPECT_EQ(count_of(graph, "transpose"), count) << name;
  }
}

TEST(LayoutsOfTheZoo, UnchangedWithoutConvolutions) {
  for (const char* name : {"mlp", "bert_base", "lstm"}) {
    const Graph graph = zoo::build(name);
    EXPECT_TRUE(identical(run_pass(graph), graph)) << name;
  }
}

TEST(MinCut, MatchesExhaustiveSearch) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto count = static_cast<std::uint32_t>(2 + random() % 7);
    struct Arc {
      std::uint32_t from, to;
      std::int64_t cost;
    };
    std::vector<Arc> arcs;
    MinCut cut;
    for (std::uint32_t k = 2; k < count; ++k) cut.add_node();
    for (int k = 0; k < 14; ++k) {
      const Arc arc{static_cast<std::uint32_t>(random() % count),
                    static_cast<std::uint32_t>(random() % count),
                    static_cast<std::int64_t>(random() % 9)};
      arcs.push_back(arc);
      cut.add_arc(arc.from, arc.to, arc.cost);
    }
    const auto cost_of = [&](auto is_sinks) {
      std::int64_t cost = 0;
      for (const Arc& arc : arcs) {
        if (!is_sinks(arc.from) && is_sinks(arc.to)) cost += arc.cost;
      }
      return cost;
    };
    std::int64_t least = MinCut::infinite;
    std::uint32_t fewest = count;
    for (std::uint32_t sides = 0; sides < 1U << (count - 2); ++sides) {
      const std::uint32_t all = sides << 2 | 2;
      const std::int64_t cost = cost_of([&](std::uint32_t at) { return (all >> at & 1) != 0; });
      const auto size = static_cast<std::uint32_t>(__builtin_popcount(all));
      if (cost > least || (cost == least && size >= fewest)) continue;
      least = cost;
      fewest = size;
    }
    const std::vector<bool> found = cut.solve();
    EXPECT_EQ(cost_of([&](std::uint32_t at) { return bool(found[at]); }), least);
    EXPECT_EQ(static_cast<std::uint32_t>(std::count(found.begin(), found.end(), true)), fewest);
  }
}

// Any subset of the movable nodes may move without changing results.
void expect_same_however_chosen(const Graph& graph, const std::string& name, int choices) {
  std::vector<Datum> inputs, expected;
  try {
    inputs = models::random_inputs(graph, 3);
    expected = reference::evaluate(graph, inputs);
  } catch (const Error&) {
    return;  // does not accept such inputs
  }
  for (const char* to : {"NHWC", "NCHW"}) {
    const Forms forms(to);
    for (int seed = 0; seed < choices; ++seed) {
      std::mt19937 random(static_cast<std::uint32_t>(seed));
      Graph moved = graph;
      const LayoutProblem problem(moved, forms, 0.5);
      LayoutAssignment choice;
      choice.is_empty = false;
      const unsigned out_of_four = 1 + static_cast<unsigned>(seed) % 4;
      for (NodeId id : moved.nodes_in_order()) {
        choice.moves[id] = problem.roles[id].can_move() && random() % 4 < out_of_four ? 1 : 0;
      }
      passes::layouts::move(moved, problem, choice);
      ASSERT_NO_THROW(verify(moved)) << name << "\n" << print(moved);
      for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
        const Value &was = graph.value(graph.outputs()[k]), &is = moved.value(moved.outputs()[k]);
        EXPECT_EQ(was.name, is.name) << name;
        EXPECT_EQ(was.type, is.type) << name;
      }
      const std::vector<Datum> actual = reference::evaluate(moved, inputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t k = 0; k < actual.size(); ++k) {
        const testing::Comparison same = testing::compare(actual[k], expected[k], {1e-3, 1e-4});
        ASSERT_TRUE(same.is_equal) << name << ": " << same.what << "\n" << print(moved);
      }
    }
  }
}

constexpr const char* kManyOps = R"(
graph g (x: f32[2, 8, 6, 5], y: f32[2, 8, 6, 5], s: f32[8, 1, 1], r: f32[6, 5], q: f32[8, 6, 5],
         v: f32[8], t: f32[2, 6, 5, 8]) {
  w = constant f32[8, 8, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.2)
  k = constant f32[8, 1, 1] normal(seed = 2, mean = 0.0, deviation = 1.0)
  h = constant f32[1, 8, 1, 5] normal(seed = 3, mean = 0.0, deviation = 1.0)
  a = conv(x, w) {pads = [1, 1, 1, 1], out_layout = "NCHW"}
  a1 = conv(y, w, v) {pads = [1, 1, 1, 1]}
  a2 = conv_transpose(a1, w) {pads = [1, 1, 1, 1]}
  b = add(a1, s)
  c = mul(b, r)
  d = sub(c, q)
  e = prelu(d, k)
  f = maximum(e, h)
  g = softmax(f) {axis = 1}
  i = concat(g, a2) {axis = -3}
  j = reduce_mean(i) {axes = [2, 3], keep_axes = false}
  l = reduce_sum(i) {axes = [-2], keep_axes = false}
  m = reduce_max(i) {axes = [1], keep_axes = false}
  m1 = reduce_max(i) {axes = [1, 3]}
  n, o = split(i) {axis = 1}
  p = max_pool(n) {kernel_shape = [2, 2], strides = [2, 2]}
  p1, p2 = max_pool(n) {kernel_shape = [2, 2]}
  p3 = average_pool(o) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  u = lrn(p3) {size = 3}
  z = batch_norm(u, v, v, v, v)
  aa = transpose(z) {perm = [0, 2, 3, 1]}
  ab = add(aa, t)
  ac = transpose(ab) {perm = [0, 3, 1, 2]}
  ad = conv(ac, w)
  ae = slice(ad) {starts = [1, 0], ends = [3, 4], axes = [2, 1]}
  af = pad(ae) {pads = [0, 1, 2, 0, 0, 0, 1, 1]}
  ag = arg_max(af) {axis = 1, keep_axes = false}
  ah = arg_max(af) {axis = 2}
  ai = resize(n) {scales = [2.0, 2.0], axes = [2, 3], mode = linear}
  aj = relu(l)
  ak = expand(m1) {shape = [2, 8, 6, 4]}
  al = tile(m1) {repeats = [1, 3, 1, 2]}
  am = cumsum(f) {axis = 2}
  dw = conv_weight_gradient(x, a) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  dx = max_pool_gradient(n, p) {kernel_shape = [2, 2], strides = [2, 2]}
  an = lrn_gradient(u, p3) {size = 3}
  ao = transpose(a) {perm = [0, 2, 3, 1]}
  aq = reshape(a1) {shape = [2, 8, 30]}
  ar = relu(aq)
  as = reshape(ar) {shape = [2, 8, 5, 6]}
  ap = group_norm(an, v, v) {groups = 2}
  return j, l, m, m1, p, p1, p2, aa, ad, ag, ah, ai, aj, ak, al, am, dw, dx, an, ao, ap, aq, as, a, a
}
)";

TEST(MovedNodes, KeepResultsForAnySubset) {
  const Graph graph = parse(kManyOps);
  const LayoutProblem problem(graph, Forms("NHWC"), 0.5);
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) == "constant") continue;
    EXPECT_NE(problem.roles[id].kind, LayoutRoles::Kind::Fixed)
        << graph.location(id) << ": " << problem.roles[id].reason;
  }
  expect_same_however_chosen(graph, "many ops", 40);
}

TEST(MovedNodes, KeepResultsInRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    expect_same_however_chosen(testing::random_graph({5000 + seed, 12}),
                               concat("random:", 5000 + seed), 4);
  }
}

TEST(MovedNodes, KeepResultsInTrainingSteps) {
  Graph step = parse(R"(
graph (x: f32[2, 9, 9, 3]@NHWC, w: f32[3, 3, 3, 4]@HWIO, b: f32[4]) {
  a = conv(x, w) {pads = [1, 1, 1, 1]}
  c = add(a, b)
  d = relu(c)
  l = lrn(d) {size = 3}
  p = max_pool(l) {kernel_shape = [3, 3], strides = [2, 2]}
  dl = max_pool_gradient(l, p) {kernel_shape = [3, 3], strides = [2, 2]}
  dd = lrn_gradient(d, dl) {size = 3}
  zero = constant f32[] 0
  on = greater(d, zero)
  dc = where(on, dd, zero)
  db = reduce_sum(dc) {axes = [0, 1, 2], keep_axes = false}
  dw = conv_weight_gradient(x, dc) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], out_layout = "HWIO"}
  return dw, db
})");
  expect_same_however_chosen(step, "step", 20);
}

TEST(ChooseLayouts, RemarksGiveReasons) {
  passes::Remarks remarks;
  run_pass(parse(R"(
graph (x: f32[1, 64, 56, 56], w: f32[64, 64, 3, 3]) {
  a = conv(x, w) {pads = [1, 1, 1, 1]}
  b = relu(a)
  y = reshape(b) {shape = [1, 200704]}
  return y
})"),
           {}, &remarks);
  const auto said = [&](const char* node) { return remarks.about(node).at(0).text; };
  EXPECT_EQ(said("a"),
            "channels last: saves the time in which 115.6 MB are moved; 'x' is "
            "transposed once (1.6 MB)");
  EXPECT_EQ(said("b"), "channels last: supports any layout, and its neighbours use this one");
  EXPECT_EQ(said("y"), "stays: it counts on the order of axes");
}

TEST(ChooseLayouts, ScalesToManyNodes) {
  std::string text = "graph (v0: f32[1, 8, 14, 14], w: f32[8, 8, 3, 3]) {\n";
  for (int k = 0; k < 20000; ++k) {
    const char* op = k % 4 == 0 ? "conv" : k % 4 == 1 ? "relu" : k % 4 == 2 ? "add" : "exp";
    text += concat("  v", k + 1, " = ", op, "(v", k);
    if (k % 4 == 0) text += ", w) {pads = [1, 1, 1, 1]}\n";
    if (k % 4 == 2) text += concat(", v", k - 1, ")\n");
    if (k % 4 % 2 == 1) text += ")\n";
  }
  const Graph graph = run_pass(parse(text + "  return v20000\n}\n"));
  EXPECT_EQ(count_of(graph, "transpose"), 2);
}

}  // namespace
}  // namespace tenon::choose_layouts_test
