#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/types.h"

#include <algorithm>
#include <cmath>

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;

ExprId number(const ExportNode& node, double value) {
  return node.build().real(value, node.type(0).dtype);
}

// Defines a rule in terms of x and Relay's arithmetic.
void define(ExportRules& rules, const char* op,
            ExprId (*rule)(const ExportNode&, const ExprBuilder&, ExprId)) {
  rules[op] = {[rule](const ExportNode& node) -> Exprs {
                 return {rule(node, node.build(), node.operands().front())};
               },
               true};
}

ExprId gelu(const ExportNode& node, const ExprBuilder& b, ExprId x) {
  const double half = 0.5;
  if (node.text("approximate") == "tanh") {
    const ExprId cube = b.multiply(b.multiply(x, x), x);
    const ExprId inner = b.multiply(b.add(x, b.multiply(cube, number(node, 0.044715))),
                                    number(node, std::sqrt(2 / M_PI)));
    return b.multiply(b.multiply(x, number(node, half)),
                      b.add(b.call("tanh", {inner}), number(node, 1)));
  }
  const ExprId share = b.call("erf", {b.multiply(x, number(node, std::sqrt(half)))});
  return b.multiply(b.multiply(x, number(node, half)), b.add(share, number(node, 1)));
}

ExprId softplus(const ExportNode& node, const ExprBuilder& b, ExprId x) {
  return b.call("log", {b.add(b.call("exp", {x}), number(node, 1))});
}

ExprId positive(const ExprBuilder& b, ExprId x) { return b.call("nn.relu", {x}); }

// x if it is positive, else scale * (exp(x / width) - 1).
ExprId exponential(const ExportNode& node, const ExprBuilder& b, ExprId x, double scale,
                   double width) {
  const ExprId low = b.call("minimum", {x, number(node, 0)});
  const ExprId bent =
      b.subtract(b.call("exp", {b.divide(low, number(node, width))}), number(node, 1));
  return b.add(positive(b, x), b.multiply(bent, number(node, scale)));
}

void add_activations(ExportRules& rules) {
  define(rules, "gelu", gelu);
  define(rules, "softplus", softplus);
  define(rules, "softsign", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return b.divide(x, b.add(b.call("abs", {x}), number(node, 1)));
  });
  define(rules, "mish", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return b.multiply(x, b.call("tanh", {softplus(node, b, x)}));
  });
  define(rules, "swish", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return b.multiply(x, b.call("sigmoid", {b.multiply(x, number(node, node.real("alpha")))}));
  });
  define(rules, "hard_sigmoid", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    const ExprId line =
        b.add(b.multiply(x, number(node, node.real("alpha"))), number(node, node.real("beta")));
    return b.call("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}});
  });
  define(rules, "hard_swish", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    const ExprId line = b.add(b.divide(x, number(node, 6)), number(node, 0.5));
    return b.multiply(x, b.call("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}}));
  });
  define(rules, "elu", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return exponential(node, b, x, node.real("alpha"), 1);
  });
  define(rules, "celu", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return exponential(node, b, x, node.real("alpha"), node.real("alpha"));
  });
  define(rules, "selu", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return b.multiply(exponential(node, b, x, node.real("alpha"), 1),
                      number(node, node.real("gamma")));
  });
  define(rules, "thresholded_relu", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    const ExprId is_above = b.call("greater", {x, number(node, node.real("alpha"))});
    return b.call("where", {is_above, x, b.call("zeros_like", {x})});
  });
  define(rules, "shrink", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    const double bound = node.real("bound"), bias = node.real("bias");
    const ExprId zeros = b.call("zeros_like", {x});
    const ExprId above = b.call("where", {b.call("greater", {x, number(node, bound)}),
                                          b.subtract(x, number(node, bias)), zeros});
    return b.call("where",
                  {b.call("less", {x, number(node, -bound)}), b.add(x, number(node, bias)), above});
  });
  define(rules, "reciprocal", [](const ExportNode& node, const ExprBuilder& b, ExprId x) {
    return b.divide(number(node, 1), x);
  });
}

Exprs export_clip(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const auto bound = [&](const char* name) -> std::optional<double> {
    const Constant* constant =
        node.has(name) ? node.graph().constant_of(node.value(name)) : nullptr;
    if (constant == nullptr || constant->size() != 1) return std::nullopt;
    return constant->materialise().real_at(0);
  };
  const std::optional<double> low = bound("min"), high = bound("max");
  if (low && high && node.operands().size() == 3) {
    return {b.call("clip", {node.operand("x")}, {{"a_min", *low}, {"a_max", *high}})};
  }
  node.need_group();
  ExprId x = node.operand("x");
  if (node.has("min")) x = b.call("maximum", {x, node.operand("min")});
  if (node.has("max")) x = b.call("minimum", {x, node.operand("max")});
  return {x};
}

}  // namespace

void add_elementwise_exports(ExportRules& rules) {
  add_activations(rules);
  rules["clip"] = {export_clip, false};
  rules["pow"] = {[](const ExportNode& node) -> Exprs {
                    if (node.type(0).dtype != node.type(1).dtype)
                      throw node.unsupported("an exponent of another type");
                    return {node.build().call("power", node.operands())};
                  },
                  false};
  rules["mod"] = {[](const ExportNode& node) -> Exprs {
                    return {node.build().call(node.text("sign") == "dividend" ? "mod" : "floor_mod",
                                              node.operands())};
                  },
                  false};
  rules["is_inf"] = {[](const ExportNode& node) -> Exprs {
                       if (!node.flag("positive") || !node.flag("negative"))
                         throw node.unsupported("one sign only");
                       return {node.build().call("isinf", node.operands())};
                     },
                     false};
  rules["simulated_quantize"] = {
      [](const ExportNode& node) -> Exprs {
        constexpr std::string_view kKinds[] = {"identity", "input", "weight", "activation"};
        const std::string word = node.text("kind");
        const auto kind =
            std::find(std::begin(kKinds), std::end(kKinds), word) - std::begin(kKinds);
        return {node.build().call("relay.op.annotation.simulated_quantize", node.operands(),
                                  {{"kind", static_cast<std::int64_t>(kind)}})};
      },
      false};
  rules["prelu"] = {
      [](const ExportNode& node) -> Exprs {
        const ExprBuilder& b = node.build();
        const ExprId x = node.operand("x");
        const ExprId low = b.call("minimum", {x, number(node, 0)});
        return {b.add(b.call("nn.relu", {x}), b.multiply(low, node.operand("slope")))};
      },
      true};
}

}  // namespace tenon::documents::relay
