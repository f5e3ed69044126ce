#include "base/error.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/compat/relay/forward_rewrite.h"

#include <gtest/gtest.h>

namespace tenon::forward_rewrite_test {
namespace {

Graph parse(const std::string& text) { return parse_graph(text, all_ops()); }

// Temporaries are realized as a negation; exp opens one.
passes::ForwardRules rules_with_exp() {
  passes::ForwardRules rules;
  rules.realize = [](passes::ForwardRewriter& rewriter, const passes::Temporary& open) {
    return rewriter.call("neg", {open.value}, {}, "n");
  };
  rules.by_op["exp"] = [](passes::ForwardRewriter& rewriter, const passes::RewrittenNode& node) {
    const ValueId x = rewriter.realize(node.operands[0]);
    return std::optional(
        std::vector{rewriter.make_temporary(rewriter.forward(node.id, {x}).front())});
  };
  return rules;
}

TEST(ForwardRewrite, UnchangedWithoutRules) {
  const Graph graph = parse(
      "graph g <N in [1, 8]> (x: f32[N, 4], unused: f32[1]) {\n  metadata \"a\" = \"b\"\n  w = "
      "constant f32[4] splat 2.0\n"
      "  y: f32[N, 4]@NC = add(x, w) @ \"layer\"\n  p, q = split(y) {axis = 1}\n  return q, y\n}");
  EXPECT_EQ(print(passes::ForwardRewriter(graph, {}).run()), print(graph));
}

TEST(ForwardRewrite, RealizesPerRuleAndSharesOtherwise) {
  const Graph graph = parse(
      "graph (x: f32[2]) {\n  a = exp(x)\n  b = tanh(a)\n  c = relu(a)\n  d = exp(a)\n  e = "
      "exp(a)\n  return b, c, d, e, a\n}");
  EXPECT_EQ(print(passes::ForwardRewriter(graph, rules_with_exp()).run()),
            print(parse("graph (x: f32[2]) {\n  a_inside = exp(x)\n  a = neg(a_inside)\n  b = "
                        "tanh(a)\n  c = relu(a)\n"
                        "  n_1 = neg(a_inside)\n  d_inside = exp(n_1)\n  n_2 = neg(a_inside)\n  "
                        "e_inside = exp(n_2)\n"
                        "  d = neg(d_inside)\n  e = neg(e_inside)\n  return b, c, d, e, a\n}")));
}

TEST(ForwardRewrite, OutputsMayStayUnrealized) {
  const Graph graph = parse("graph (x: f32[2]) {\n  a = exp(x)\n  return a\n}");
  passes::ForwardRules rules = rules_with_exp();
  rules.realize_outputs = false;
  EXPECT_EQ(print(passes::ForwardRewriter(graph, rules).run()), print(graph));
}

// A rule that declines leaves its node to be copied; its context identifies the node.
TEST(ForwardRewrite, RulesReceiveTheirContext) {
  const Graph graph = parse(
      "graph (x: f32[2]) {\n  a = relu(x) @ \"first\"\n  b = relu(a) @ \"second\"\n  return b\n}");
  passes::ForwardRules rules;
  rules.context = [](const Graph& from, NodeId id) { return std::any(from.node(id).name); };
  std::vector<std::string> seen;
  rules.by_op["relu"] =
      [&](passes::ForwardRewriter&,
          const passes::RewrittenNode& node) -> std::optional<std::vector<passes::Rewritten>> {
    seen.push_back(std::any_cast<std::string>(node.context));
    return std::nullopt;
  };
  EXPECT_EQ(print(passes::ForwardRewriter(graph, rules).run()), print(graph));
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "second"}));
}

TEST(ForwardRewrite, TriggersOnSeveralReaders) {
  const Graph graph = parse(
      "graph (x: f32[2]) {\n  a = tanh(x)\n  b = relu(a)\n  c = add(a, b)\n  d = add(c, c)\n  "
      "return d, b\n}");
  passes::ForwardRules rules;
  int count = 0;
  rules.on_several_readers = [&](passes::ForwardRewriter&, passes::Rewritten item) {
    ++count;
    return item;
  };
  EXPECT_EQ(print(passes::ForwardRewriter(graph, rules).run()), print(graph));
  // a in b and c; b, which is an output too, in c; c twice in d.
  EXPECT_EQ(count, 5);
}

TEST(ForwardRewrite, VisitsOperandsLeftToRight) {
  const Graph graph = parse(
      "graph (x: f32[2]) {\n  r = tanh(x)\n  l = relu(x)\n  dead = sin(x)\n  y = add(l, r)\n  "
      "return y\n}");
  EXPECT_EQ(
      print(passes::ForwardRewriter(graph, {}).run()),
      print(parse(
          "graph (x: f32[2]) {\n  l = relu(x)\n  r = tanh(x)\n  y = add(l, r)\n  return y\n}")));
}

TEST(ForwardRewrite, DeepGraphs) {
  Graph graph("deep");
  ValueId value = graph.add_input("x", parse_type("f32[2]"));
  for (int k = 0; k < 20000; ++k) {
    Graph::NewNode node;
    node.op = &find_op("exp");
    node.operands = {value};
    node.results = {""};
    value = graph.node(graph.add_node(std::move(node))).results.front();
  }
  graph.add_output(value);
  EXPECT_EQ(passes::ForwardRewriter(graph, rules_with_exp()).run().node_count(), 40000u);
}

}  // namespace
}  // namespace tenon::forward_rewrite_test
