#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "passes/rewrite/facts.h"
#include "passes/rewrite/rewriter.h"
#include "passes/simplify/rules.h"

#include <gtest/gtest.h>

namespace tenon::passes::rewrite::rewrite_test {
namespace {

using Rules = std::vector<Rule>;

std::string rewritten(const char* text, const RuleSet& rules, passes::PassOptions options = {}) {
  Graph graph = parse_graph(text, all_ops());
  const RewriteOutcome outcome = apply(graph, rules, "test", options);
  EXPECT_TRUE(outcome.has_settled);
  verify(graph);
  return print(graph);
}

void expect_refused(const Rule& rule, const char* message) {
  try {
    const RuleSet rules(Rules{rule});
    ADD_FAILURE() << "an error was expected: " << message;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(RewriteRules, ReferToExistingNames) {
  expect_refused({"rellu(x)", "x"}, "did you mean 'relu'");
  expect_refused({"relu(x) {alpha = a}", "x"}, "relu has no attribute 'alpha'");
  expect_refused({"relu(x, z)", "x"}, "relu has no further operand");
  expect_refused({"pad(x, worth = v)", "x"}, "pad has no operand 'worth'");
  expect_refused({"relu(x", "x"}, "expected ')'");
  expect_refused({"relu(x) y", "x"}, "the text should end here");
}

TEST(RewriteRules, SimplifyRulesAreValid) {
  EXPECT_GT(passes::simplification::rules().rules().size(), 60U);
}

TEST(RewriteRules, OmittedAttributesHaveDefaults) {
  const RuleSet plain(Rules{{"gelu(x)", "relu(x)"}}), any(Rules{{"gelu(x) {..}", "relu(x)"}});
  const char* text = "graph (x: f32[2]) { y = gelu(x) {approximate = tanh} return y }";
  EXPECT_NE(rewritten(text, plain).find("gelu"), std::string::npos);
  EXPECT_NE(rewritten(text, any).find("relu"), std::string::npos);
}

TEST(RewriteRules, AttributesCarryOver) {
  const RuleSet rules(
      Rules{{"conv(neg(x), w, b?) {groups = g, ..r}", "conv(x, w, b) {groups = g, ..r}"}});
  EXPECT_EQ(rewritten("graph (x: f32[1, 2, 8, 8], w: f32[4, 1, 3, 3]) {\n"
                      "  a = neg(x)\n"
                      "  y = conv(a, w) {groups = 2, strides = [2, 2]}\n"
                      "  return y\n}",
                      rules),
            "graph (x: f32[1, 2, 8, 8], w: f32[4, 1, 3, 3]) {\n"
            "  y = conv(x, w) {groups = 2, strides = [2, 2]}\n"
            "  return y\n}\n");
}

TEST(RewriteRules, CommutativeOperands) {
  const RuleSet sum(Rules{{"add(exp(x), z)", "sub(x, z)"}}),
      difference(Rules{{"sub(exp(x), z)", "add(x, z)"}});
  EXPECT_NE(rewritten("graph (x: f32[2], z: f32[2]) { a = exp(x) y = add(z, a) return y }", sum)
                .find("sub(x, z)"),
            std::string::npos);
  EXPECT_NE(
      rewritten("graph (x: f32[2], z: f32[2]) { a = exp(x) y = sub(z, a) return y }", difference)
          .find("sub(z, a)"),
      std::string::npos);
}

TEST(RewriteRules, AssociativeOperands) {
  const RuleSet rules(Rules{{"mul*(x, tanh(x), 0.5)", "gelu(x)"}});
  for (const char* body : {"b = mul(h, x) y = mul(b, t)", "b = mul(x, t) y = mul(h, b)",
                           "b = mul(t, h) y = mul(x, b)"}) {
    const std::string text =
        concat("graph (x: f32[2]) { h = constant f32[] 0.5 t = tanh(x) ", body, " return y }");
    EXPECT_NE(rewritten(text.c_str(), rules).find("y = gelu(x)"), std::string::npos) << body;
  }
}

TEST(RewriteRules, AlternativesLabelsAndOptionalNodes) {
  const RuleSet sound(Rules{{"div(c: sub(cast?(x) {to = t}, _), sqrt(square(c)))", "neg(x)"}},
                      {"square(v) = mul(v, v) | pow(v, 2)"});
  const char* text =
      "graph (x: f32[2], m: f32[2]) { two = constant f32[] 2 c = sub(x, m) q = pow(c, two) "
      "r = sqrt(q) y = div(c, r) return y }";
  EXPECT_NE(rewritten(text, sound).find("y = neg(x)"), std::string::npos);
  const char* other =
      "graph (x: f32[2], m: f32[2]) { c = sub(x, m) q = mul(c, m) r = sqrt(q) y = div(c, r) "
      "return y }";
  EXPECT_NE(rewritten(other, sound).find("y = div(c, r)"), std::string::npos);
}

TEST(RewriteRules, StopsRulesThatUndoEachOther) {
  const RuleSet rules(Rules{{"relu(x)", "abs(x)"}, {"abs(x)", "relu(x)"}});
  Graph graph = parse_graph("graph (x: f32[2]) { y = relu(x) return y }", all_ops());
  EXPECT_FALSE(apply(graph, rules, "test", {}).has_settled);
  verify(graph);
}

TEST(RewriteRules, ReplacementsKeepTheType) {
  const RuleSet rules(Rules{{"add(x, _)", "x"}});
  EXPECT_NE(
      rewritten("graph (x: f32[2], z: f32[3, 2]) { y = add(x, z) a = relu(y) return a }", rules)
          .find("add(x, z)"),
      std::string::npos);
}

TEST(RewriteRules, RefusalsAreRemarks) {
  passes::Remarks remarks;
  passes::PassOptions options;
  options.remarks = &remarks;
  const RuleSet rules(Rules{{"exp(y: log(x))", "x", read_once("y")}});
  rewritten("graph (x: f32[2]) { l = log(x) y = exp(l) return y, l }", rules, options);
  ASSERT_EQ(remarks.about("y").size(), 1U);
  EXPECT_EQ(remarks.about("y")[0].text, "not rewritten by 'exp(y: log(x))': 'l' has other readers");
}

TEST(RewriteRules, KeepsNamesAndStatedTypes) {
  const RuleSet rules(Rules{{"relu(x)", "abs(x)"}});
  EXPECT_NE(rewritten("graph (x: f32[2]) { y = relu(x) @ \"layer/1\" z = exp(y) return z }", rules)
                .find("y = abs(x) @ \"layer/1\""),
            std::string::npos);
}

TEST(RewriteFacts, Types) {
  EXPECT_TRUE(holds_exactly(DType::F32, DType::F16));
  EXPECT_TRUE(holds_exactly(DType::F32, DType::I16));
  EXPECT_TRUE(holds_exactly(DType::I64, DType::U32));
  EXPECT_FALSE(holds_exactly(DType::F32, DType::I32));
  EXPECT_FALSE(holds_exactly(DType::BF16, DType::F16));
  EXPECT_FALSE(holds_exactly(DType::F16, DType::BF16));
  EXPECT_FALSE(holds_exactly(DType::U64, DType::I8));
}

TEST(RewriteFacts, CommutativityIsInferred) {
  for (const char* op : {"add", "mul", "maximum", "logical_or", "bit_xor", "equal"}) {
    EXPECT_TRUE(commutes(find_op(op))) << op;
  }
  for (const char* op : {"sub", "div", "pow", "less", "matmul", "gather", "mod"}) {
    EXPECT_FALSE(commutes(find_op(op))) << op;
  }
}

}  // namespace
}  // namespace tenon::passes::rewrite::rewrite_test
