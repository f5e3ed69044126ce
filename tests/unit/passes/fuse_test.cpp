#include "base/error.h"
#include "expr/fused_groups.h"
#include "expr/signature.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/summary.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/needs_documents.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tenon::fuse_test {
namespace {

Graph run_fuse(Graph graph, std::string mode = "", std::size_t max_depth = 256,
               passes::Remarks* remarks = nullptr) {
  passes::PassOptions options;
  options.fuse_mode = std::move(mode);
  options.fuse_max_depth = max_depth;
  options.remarks = remarks;
  Graph fused = passes::find_pass("fuse").run(std::move(graph), options);
  verify(fused);
  return fused;
}

bool is_constant(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return !node.results.empty() && node.results[0] && graph.constant_of(node.results[0]);
}

// The ops of every kernel, such as "conv+add+relu", with their counts.
std::map<std::string, int> kernels(const Graph& graph) {
  std::map<std::string, int> found;
  for (NodeId id : graph.nodes_in_order()) {
    if (is_constant(graph, id)) continue;
    std::string ops(graph.op_name(id));
    if (is_fused_group(graph, id)) {
      ops.clear();
      const Graph& body = graph.node(id).bodies.front();
      for (NodeId inner : body.nodes_in_order()) {
        if (is_constant(body, inner)) continue;
        if (!ops.empty()) ops += "+";
        ops += body.op_name(inner);
      }
    } else {
      for (const Graph& body : graph.node(id).bodies) {
        for (const auto& [name, count] : kernels(body)) found[name] += count;
      }
    }
    ++found[ops];
  }
  return found;
}

using Kernels = std::map<std::string, int>;

Graph parse(const std::string& text) { return parse_graph(text, all_ops()); }

Graph chain_of_exp(int length) {
  std::string text = "graph (x: f32[10, 20]) {\n  v0 = exp(x)\n";
  for (int k = 1; k < length; ++k) text += concat("  v", k, " = exp(v", k - 1, ")\n");
  return parse(text + concat("  return v", length - 1, "\n}\n"));
}

// 33 of the convolutions have their own bias and relu; at a join of branches, the group whose
// anchor is first in Relay's numbering takes the join.
TEST(FuseAsRelay, ReferenceGroups) {
  NEEDS_DOCUMENTS();
  for (const char* model :
       {"tests/fixtures/resnet50_v1.before.relay", "zoo:resnet50?form=v1,layout=NHWC,batch=32"}) {
    const Graph graph = run_fuse(models::load_model(model), "relay");
    EXPECT_EQ(kernels(graph), (Kernels{{"conv+add+relu", 33},
                                       {"conv+add+add+relu", 13},
                                       {"conv+add", 8},
                                       {"max_pool+add+relu", 3},
                                       {"pad", 1},
                                       {"max_pool", 1},
                                       {"reduce_mean", 1}}))
        << model;
    EXPECT_EQ(models::count_kernels(graph), 60u);
  }
}

// Each hint stays in a group of its own; stop_fusion disappears.
TEST(FuseAsRelay, RemovesStopFusion) {
  NEEDS_DOCUMENTS();
  const Graph graph =
      run_fuse(models::load_model("tests/fixtures/resnet50_v1.after.relay"), "relay");
  const Kernels found = kernels(graph);
  EXPECT_EQ(found.count("stop_fusion"), 0u);
  EXPECT_EQ(found.at("cast_hint"), 86);
  EXPECT_EQ(found.at("conv+add+relu") + found.at("conv+add"), 54);
}

TEST(FuseAsRelay, FirstConvolutionTakesTheAdd) {
  const Graph graph = run_fuse(parse(R"(graph (x: f32[1, 16, 64, 64]) {
    k = constant f32[16, 1, 1] normal(seed = 1, mean = 0.0, deviation = 1.0)
    w = constant f32[16, 16, 3, 3] normal(seed = 2, mean = 0.0, deviation = 1.0)
    u = constant f32[16, 16, 1, 1] normal(seed = 3, mean = 0.0, deviation = 1.0)
    v = constant f32[16, 16, 3, 3] normal(seed = 4, mean = 0.0, deviation = 1.0)
    x0 = add(x, k)
    y = conv(x0, w) {pads = [1, 1, 1, 1]}
    y1 = add(k, y)
    s = add(y, y1)
    z2 = conv(s, u)
    z3 = conv(s, v) {pads = [1, 1, 1, 1]}
    z = add(z2, z3)
    return z
  })"),
                               "relay");
  EXPECT_EQ(kernels(graph),
            (Kernels{{"add", 1}, {"conv+add+add", 1}, {"conv+add", 1}, {"conv", 1}}));
  // The add joins the convolution that is read first.
  const NodeId last = graph.value(graph.outputs().front()).producer;
  EXPECT_NE(graph.node(last).bodies.front().find("z2"), ValueId{});
  EXPECT_NE(graph.find("z3"), ValueId{});
}

TEST(FuseAsRelay, CutsAChainOf300At256) {
  const Graph graph = run_fuse(chain_of_exp(300), "relay");
  std::vector<std::size_t> sizes;
  for (NodeId id : graph.nodes_in_order())
    sizes.push_back(graph.node(id).bodies.front().node_count());
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{44, 256}));
}

TEST(FuseAsRelay, CutsAChainOf20AtTheRequestedDepth) {
  const Graph graph = run_fuse(chain_of_exp(20), "relay", 10);
  std::vector<std::size_t> sizes;
  for (NodeId id : graph.nodes_in_order())
    sizes.push_back(graph.node(id).bodies.front().node_count());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{10, 10}));
}

TEST(FuseAsRelay, ThreeDiamondsOf11) {
  std::string text = "graph (x: f32[10, 20]) {\n";
  std::string in = "x";
  for (int diamond = 0; diamond < 3; ++diamond) {
    std::string ends[2];
    for (int side = 0; side < 2; ++side) {
      std::string at = in;
      for (int k = 0; k < 5; ++k) {
        const std::string next = concat("v", diamond, "_", side, "_", k);
        text += concat("  ", next, " = exp(", at, ")\n");
        at = next;
      }
      ends[side] = at;
    }
    in = concat("s", diamond);
    text += concat("  ", in, " = add(", ends[0], ", ", ends[1], ")\n");
  }
  const Graph graph = run_fuse(parse(text + "  return s2\n}\n"), "relay", 11);
  std::vector<std::size_t> sizes;
  for (NodeId id : graph.nodes_in_order())
    sizes.push_back(graph.node(id).bodies.front().node_count());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{11, 11, 11}));
}

// Relay's known limits: reductions do not start a group, and index maps stop at contractions.
TEST(FuseAsRelay, ReductionsDoNotStartGroups) {
  const Graph graph = run_fuse(parse(R"(graph (x: f32[16, 128]) {
    e = exp(x)
    s = reduce_sum(e) {axes = [1]}
    y = sqrt(s)
    return y
  })"),
                               "relay");
  EXPECT_EQ(kernels(graph), (Kernels{{"exp+reduce_sum", 1}, {"sqrt", 1}}));
}

// The elements of a tuple join the group of its reader.
TEST(FuseAsRelay, TupleElementsJoinTheReader) {
  const Graph graph = run_fuse(parse(R"(graph (x: f32[16, 128], z: f32[16, 128]) {
    a = exp(x)
    b = tanh(z)
    c = concat(a, b) {axis = 1}
    y = relu(c)
    return y
  })"),
                               "relay");
  EXPECT_EQ(kernels(graph), (Kernels{{"exp+tanh+concat+relu", 1}}));
}

TEST(Fuse, Resnet50Kernels) {
  const Graph graph = run_fuse(zoo::build("resnet50"));
  EXPECT_EQ(kernels(graph), (Kernels{{"conv+batch_norm+relu", 32},
                                     {"conv+batch_norm+add+relu", 16},
                                     {"conv+batch_norm", 3},
                                     {"conv+batch_norm+relu+conv+batch_norm", 1},
                                     {"matmul+add", 1},
                                     {"max_pool", 1},
                                     {"reduce_mean", 1}}));
}

TEST(Fuse, BertKernelsPerLayer) {
  const Graph graph = run_fuse(zoo::build("bert_base"));
  const Kernels found = kernels(graph);
  EXPECT_EQ(found.at("matmul+div+add"), 12);
  EXPECT_EQ(found.at("softmax+matmul+transpose+reshape"), 12);
  EXPECT_EQ(found.at("matmul+add+gelu"), 12);
  EXPECT_EQ(found.at("matmul+add+add"), 24);
  EXPECT_EQ(found.at("layer_norm"), 24);
  EXPECT_EQ(models::count_kernels(graph), 98u);
}

TEST(Fuse, FewerKernelsThanRelay) {
  for (const zoo::Network& network : zoo::networks()) {
    const Graph graph = zoo::build(network.name);
    const std::size_t own = models::count_kernels(run_fuse(graph)),
                      relay = models::count_kernels(run_fuse(graph, "relay"));
    // A network of a few layers has too few nodes to fuse.
    constexpr std::size_t kTiny = 4;
    EXPECT_LE(own, relay) << network.name;
    if (relay > kTiny) {
      EXPECT_LT(own, relay) << network.name;
    }
  }
}

TEST(Fuse, RemarksOnFullRankAdds) {
  passes::Remarks remarks;
  run_fuse(parse(R"(graph (x: f16[4, 28, 28, 128]@NHWC, w: f16[256, 3, 3, 128]@OHWI,
                           z: f16[4, 28, 28, 256]@NHWC) {
    c = conv(x, w) {pads = [1, 1, 1, 1]}
    y = add(c, z)
    return y
  })"),
           "", 256, &remarks);
  ASSERT_EQ(remarks.about("y").size(), 1u);
  EXPECT_EQ(remarks.about("y")[0].text,
            "joins 'c': epilogue of a contraction, element by element; 'z' is "
            "a residual, with one element per result element, not a bias, with one per channel");
  ASSERT_EQ(remarks.about("c").size(), 1u);
  EXPECT_EQ(remarks.about("c")[0].text, "takes 'y' (add): one kernel around this contraction");
}

TEST(Fuse, RemarksGiveReasons) {
  passes::Remarks remarks;
  run_fuse(parse(R"(graph (x: f32[16, 128], w: f32[128, 9000]) {
    a = gelu(x)
    m = matmul(a, w)
    s = softmax(m)
    c = cumsum(s) {axis = 0}
    y = add(c, s)
    return y
  })"),
           "", 256, &remarks);
  const auto last = [&](const char* name) { return remarks.about(name).back().text; };
  EXPECT_EQ(last("a"), "not fused with its reader 'm': a contraction reads it many times over");
  EXPECT_EQ(last("m"),
            "not fused with its reader 's': in pieces, more would be computed or read again than "
            "memory is spared");
  EXPECT_EQ(remarks.about("s")[0].text, "not fused with its reader 'c': the reader is not fusible");
  EXPECT_EQ(last("s"), "not fused with its reader 'y': other kernels have to run between the two");
  EXPECT_EQ(last("c"), "not fused with its reader 'y': it stays alone");
}

// Random graphs of the op classes that fusion distinguishes.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {}

  Graph make() {
    Graph graph("random");
    for (int k = 0; k < 2; ++k) {
      values_.push_back(graph.add_input(k == 0 ? "x" : "z", TensorType{DType::F32, {4, 4}, {}}));
    }
    for (int k = 0; k < 24; ++k) {
      Graph::NewNode node = random_node();
      for (ValueId result : graph.node(graph.add_node(std::move(node))).results) {
        values_.push_back(result);
      }
    }
    graph.add_output(values_.back());
    graph.add_output(pick());
    graph.add_output(pick());
    return graph;
  }

 private:
  ValueId pick() {
    const std::size_t reach = std::min<std::size_t>(values_.size(), 8);
    return values_[values_.size() - 1 - random_() % reach];
  }

  Graph::NewNode call(const char* op, int operands, Attributes attrs = {}) {
    Graph::NewNode node;
    node.op = &find_op(op);
    for (int k = 0; k < operands; ++k) node.operands.push_back(pick());
    node.attrs = std::move(attrs);
    return node;
  }

  Graph::NewNode random_node() {
    switch (random_() % 12) {
      case 0:
        return call("matmul", 2);
      case 1:
        return call("transpose", 1, {{"perm", Dims{1, 0}}});
      case 2:
        return call("softmax", 1, {{"axis", Dim(static_cast<std::int64_t>(random_() % 2))}});
      case 3:
        return call("cumsum", 1, {{"axis", Dim(0)}});
      case 4:
        return call("relu", 1);
      case 5:
        return call("tanh", 1);
      case 6:
        return call("maximum", 2);
      case 7:
        return call("mul", 2);
      case 8:
        return call("reduce_mean", 1, {{"axes", Dims{1}}});
      default:
        return call("add", 2);
    }
  }

  std::mt19937 random_;
  std::vector<ValueId> values_;
};

TEST(Fuse, RandomGraphsAreBitIdentical) {
  std::size_t groups = 0;
  for (std::uint32_t seed = 0; seed < 800; ++seed) {
    Graph graph;
    try {
      graph = RandomGraph(seed).make();
    } catch (const Error&) {
      continue;  // shapes that do not broadcast
    }
    const std::vector<Datum> inputs = models::random_inputs(graph, seed);
    const std::vector<Datum> expected = reference::evaluate(graph, inputs);
    for (const char* mode : {"", "relay"}) {
      SCOPED_TRACE(tenon::concat("mode '", mode, "', seed ", seed, "\n", print(graph)));
      const Graph fused = run_fuse(graph, mode);
      groups += has_groups(fused);
      const std::vector<Datum> actual = reference::evaluate(fused, inputs);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const testing::Comparison same = compare(actual[k], expected[k], testing::Tolerance{0, 0});
        ASSERT_TRUE(same.is_equal) << print(fused);
      }
      Graph flat = fused;
      inline_groups(flat);
      verify(flat);
    }
  }
  EXPECT_GT(groups, 800u);
}

TEST(Fuse, IsDeterministic) {
  const Graph graph = zoo::build("squeezenet");
  EXPECT_EQ(print(run_fuse(graph)), print(run_fuse(graph)));
}

// A value with thousands of readers, and a chain of the same length: neither may take quadratic
// time.
TEST(Fuse, ScalesToManyNodes) {
  std::string text = "graph (x: f32[4]) {\n  a0 = exp(x)\n";
  constexpr int kCount = 20000;
  for (int k = 1; k <= kCount; ++k) text += concat("  a", k, " = add(a", k - 1, ", a0)\n");
  const Graph graph = run_fuse(parse(text + concat("  return a", kCount, "\n}\n")));
  EXPECT_LT(graph.node_count(), 400u);
}

// A chain of operators in the given order.
Graph random_chain(int length, const std::vector<const char*>& ops) {
  std::mt19937 random(1);
  std::string text = "graph (v0: f32[4, 8]) {\n";
  for (int k = 1; k <= length; ++k)
    text += concat("  v", k, " = ", ops[random() % ops.size()], "(v", k - 1, ")\n");
  return parse(text + concat("  return v", length, "\n}\n"));
}

struct Code {
  std::size_t nodes = 0;    // nodes of distinct kernels
  std::size_t largest = 0;  // nodes of one kernel
};

Code code_of(const Graph& graph) {
  Code code;
  std::set<std::string> known;
  for (NodeId id : graph.nodes_in_order()) {
    const std::size_t nodes =
        is_fused_group(graph, id) ? graph.node(id).bodies.front().node_count() : 1;
    code.largest = std::max(code.largest, nodes);
    if (known.insert(signature_of(graph, id)).second) code.nodes += nodes;
  }
  return code;
}

// Kernels of 256 nodes are all distinct here. Kernels of eight repeat with two ops, and single
// nodes repeat with many ops.
TEST(Fuse, LargeGraphsGetRepeatingKernels) {
  constexpr int kCount = 20000;
  const Code two = code_of(run_fuse(random_chain(kCount, {"tanh", "exp"})));
  EXPECT_LE(two.nodes, 8U << 9U);
  EXPECT_EQ(two.largest, 8U);
  const Code many = code_of(run_fuse(
      random_chain(kCount, {"tanh", "exp", "sin", "cos", "softplus", "erf", "atan", "sigmoid"})));
  EXPECT_EQ(many.nodes, 8U);
  EXPECT_EQ(many.largest, 1U);
}

TEST(Fuse, SmallGraphsGetMaximalKernels) {
  const Code code = code_of(run_fuse(random_chain(1000, {"tanh", "exp"})));
  EXPECT_EQ(code.largest, 256U);
}

// Each reduction is a separate loop inside the loop over rows.
TEST(Fuse, AtMostEightReductionsPerKernel) {
  std::size_t folds = 0;
  for (const auto& [ops, count] : kernels(run_fuse(random_chain(40, {"softmax"})))) {
    EXPECT_EQ(ops, "softmax+softmax+softmax+softmax+softmax+softmax+softmax+softmax");
    folds += static_cast<std::size_t>(count) * 8;
  }
  EXPECT_EQ(folds, 40U);
}

}  // namespace
}  // namespace tenon::fuse_test
