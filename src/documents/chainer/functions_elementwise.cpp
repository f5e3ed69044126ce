#include "documents/chainer/functions.h"
#include "ops/definition/var_ops.h"

namespace tenon::documents::chainer {
namespace {

using Vars = std::vector<Var>;
using Number = FunctionRule::Number;

std::vector<Retained> retains_input(const FunctionView&) { return {{{0}, {}}}; }
std::vector<Retained> retains_output(const FunctionView&) { return {{{}, {0}}}; }
// cuDNN's backward takes the input too, although the gradient does not depend on it.
std::vector<Retained> retains_output_and_cudnn_input(const FunctionView&) {
  return {{{0}, {0}}, {{}, {0}}};
}
std::vector<Retained> retains_input_and_output(const FunctionView&) {
  return {{{0}, {0}}, {{0}, {}}};
}
std::vector<Retained> retained_by_slope(const FunctionView& view) {
  return view.real("slope") >= 0 ? std::vector<Retained>{{{}, {0}}, {{0}, {0}}}
                                 : std::vector<Retained>{{{0}, {}}};
}

Relation relate_unary(const FunctionView& view) {
  return [view](PartialShapes& shapes) { return shapes.same_shape(view.input(0), view.output()); };
}

// Returns the broadcast shape of both operands, once both are known.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  for (std::size_t k = 0; k < shorter.size(); ++k) {
    std::int64_t& extent = result[longer.size() - shorter.size() + k];
    if (extent == 1) extent = shorter[k];
    if (shorter[k] != 1 && shorter[k] != extent) return std::nullopt;
  }
  return result;
}

// An operand with the result's size has its shape; smaller ones are broadcast, as in later versions
// of Chainer.
Relation relate_broadcast(const FunctionView& view) {
  return [view](PartialShapes& shapes) {
    const std::size_t y = view.output();
    bool all_known = true, any_smaller = false;
    for (const std::size_t x : view.inputs()) {
      const bool is_smaller =
          shapes.count(x) && shapes.count(y) && *shapes.count(x) < *shapes.count(y);
      if (!is_smaller && !shapes.same_shape(x, y)) return false;
      any_smaller = any_smaller || is_smaller;
      all_known = all_known && shapes.is_complete(x);
    }
    if (!any_smaller || !all_known) return true;
    std::optional<Shape> result = shapes.extents(view.input(0));
    for (std::size_t k = 1; k < view.input_count() && result; ++k) {
      result = broadcast(*result, shapes.extents(view.input(k)));
    }
    return result ? shapes.set_shape(y, *result)
                  : shapes.refuse(view.input(0), "does not broadcast with the others");
  };
}

// Builds the operator of the rule; a binary function may have received one variable twice.
Vars build_plain(const FunctionView& view, Builder& build, const Vars& in) {
  const FunctionRule& rule = *find_rule(view.function().name);
  Vars operands = in;
  if (rule.number != Number::None) {
    const Var value = build.scalar(view.real("value"), in[0]);
    operands.insert(rule.number == Number::First ? operands.begin() : operands.end(), value);
  } else if (operands.size() < rule.most_inputs) {
    operands.push_back(in[0]);
  }
  return {build.call(rule.op, operands)};
}

Vars build_sum_of_all(const FunctionView&, Builder& build, const Vars& in) {
  if (in.size() == 1) return {build.call("identity", in)};
  Var total = in[0];
  for (std::size_t k = 1; k < in.size(); ++k) total = build.call("add", {total, in[k]});
  return {total};
}

Vars build_leaky_relu(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("leaky_relu", in, {{"alpha", view.real("slope")}})};
}
Vars build_elu(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("elu", in, {{"alpha", view.real("alpha", 1)}})};
}
Vars build_clipped_relu(const FunctionView& view, Builder& build, const Vars& in) {
  return {
      build.call("clip", {in[0], build.scalar(0, in[0]), build.scalar(view.real("cap"), in[0])})};
}
Vars build_softplus(const FunctionView& view, Builder& build, const Vars& in) {
  const double beta = view.real("beta", 1);
  if (beta == 1) return {build.call("softplus", in)};
  return {build.call("softplus", {in[0] * beta}) / beta};
}

// Dropout is an identity in inference; the ratio stays in the graph.
Vars build_dropout(const FunctionView& view, Builder& build, const Vars& in) {
  const Var ratio = build.scalar(view.real("dropout_ratio"), in[0]);
  return {build.call_all("dropout", {in[0], ratio, build.constant("bool[] false")},
                         std::vector<Attr>{}, {"", ""})[0]};
}
std::int64_t hidden_by_dropout(const FunctionView& view) { return view.bytes(view.input(0)); }

// Chainer multiplies the sum of squares by alpha, Tenon by alpha over the number of neighbours.
Vars build_response_normalization(const FunctionView& view, Builder& build, const Vars& in) {
  const std::int64_t size = view.integer("n", 1, kMaxWindow);
  return {build.call("lrn", in,
                     {{"size", size},
                      {"alpha", view.real("alpha") * static_cast<double>(size)},
                      {"beta", view.real("beta")},
                      {"bias", view.real("k")}})};
}

Vars build_softmax(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("softmax", in, {{"axis", view.integer("axis", -8, 8, 1)}})};
}
Vars build_log_softmax(const FunctionView& view, Builder& build, const Vars& in) {
  return {build.call("log_softmax", in, {{"axis", view.integer("axis", -8, 8, 1)}})};
}

// Returns the axis of scales and shifts.
std::size_t key_axis(const FunctionView& view) {
  if (!view.has("key_axis")) return 1;
  const std::vector<std::int64_t> axes = view.integers("key_axis");
  if (axes.size() != 1 || axes[0] < 0 || axes[0] > 7) {
    throw view.error("key_axis", "batch normalization along more than one axis");
  }
  return static_cast<std::size_t>(axes[0]);
}

Relation relate_batch_normalization(const FunctionView& view) {
  const std::size_t axis = key_axis(view);
  return [view, axis](PartialShapes& shapes) {
    const std::size_t x = view.input(0);
    if (!shapes.same_shape(x, view.output())) return false;
    for (std::size_t k = 1; k < view.input_count(); ++k) {
      if (!shapes.set_rank(view.input(k), 1) || !shapes.same_extent(x, axis, view.input(k), 0))
        return false;
    }
    // Vector operands occur often enough that an unknown rank of x may be inferred from them.
    return true;
  };
}

Vars build_batch_normalization(const FunctionView& view, Builder& build, const Vars& in) {
  const std::string shape = concat("f32[", build.shape(in[1])[0], "] splat ");
  std::vector<Attr> attrs{{"epsilon", view.real("eps")}, {"momentum", view.real("decay", 0.9)}};
  if (const std::size_t axis = key_axis(view); axis != 1)
    attrs.emplace_back("axis", static_cast<std::int64_t>(axis));
  // The file lacks the running statistics, and the result does not depend on them.
  return {build.call_all(
      "batch_norm_training",
      {in[0], in[1], in[2], build.constant(shape + "0"), build.constant(shape + "1")}, attrs,
      {""})[0]};
}
std::int64_t hidden_by_batch_normalization(const FunctionView& view) {
  return 2 * view.bytes(view.input(1));
}

Vars build_fixed_batch_normalization(const FunctionView& view, Builder& build, const Vars& in) {
  std::vector<Attr> attrs{{"epsilon", view.real("eps")}};
  if (const std::size_t axis = key_axis(view); axis != 1)
    attrs.emplace_back("axis", static_cast<std::int64_t>(axis));
  return {build.call("batch_norm", in, attrs)};
}
std::vector<Retained> retained_by_fixed(const FunctionView&) { return {{{0, 1, 3, 4}, {}}}; }

}  // namespace

std::span<const FunctionRule> elementwise_functions() {
  static const auto unary = [](std::string_view name, auto build, auto retained) {
    return FunctionRule{.name = name, .relate = relate_unary, .build = build, .retained = retained};
  };
  static const auto plain = [](std::string_view name, std::string_view op, auto retained,
                               Number number = Number::None) {
    FunctionRule rule = unary(name, build_plain, retained);
    rule.op = op;
    rule.number = number;
    return rule;
  };
  static const auto binary = [](std::string_view name, std::string_view op, auto retained) {
    FunctionRule rule = plain(name, op, retained);
    rule.most_inputs = 2;
    rule.relate = relate_broadcast;
    return rule;
  };
  static const std::vector<FunctionRule> rules = [] {
    std::vector<FunctionRule> all = {
        plain("ReLU", "relu", retains_output),
        unary("LeakyReLU", build_leaky_relu, retained_by_slope),
        unary("ELU", build_elu, retains_input_and_output),
        unary("ClippedReLU", build_clipped_relu, retains_input_and_output),
        plain("Sigmoid", "sigmoid", retains_output_and_cudnn_input),
        plain("Tanh", "tanh", retains_output_and_cudnn_input),
        unary("Softplus", build_softplus, retains_input),
        plain("Exp", "exp", retains_output),
        plain("Log", "log", retains_input),
        plain("Absolute", "abs", retains_input),
        plain("Neg", "neg", retains_nothing),
        plain("Sin", "sin", retains_input),
        plain("Cos", "cos", retains_input),
        plain("Sqrt", "sqrt", retains_output),
        plain("Identity", "identity", retains_nothing),
        plain("AddConstant", "add", retains_nothing, Number::Second),
        plain("SubFromConstant", "sub", retains_nothing, Number::First),
        plain("MulConstant", "mul", retains_nothing, Number::Second),
        plain("DivFromConstant", "div", retains_input, Number::First),
        plain("PowVarConst", "pow", retains_input, Number::Second),
        unary("LocalResponseNormalization", build_response_normalization, retains_input_and_output),
        unary("Softmax", build_softmax, retains_output),
        unary("LogSoftmax", build_log_softmax, retains_output),
        binary("Add", "add", retains_nothing),
        binary("Sub", "sub", retains_nothing),
        binary("Mul", "mul", retains_inputs),
        binary("Div", "div", retains_inputs),
        binary("Maximum", "maximum", retains_inputs),
        binary("Minimum", "minimum", retains_inputs),
        {.name = "MultiAdd",
         .least_inputs = 1,
         .most_inputs = 1 << 16,
         .relate = relate_broadcast,
         .build = build_sum_of_all,
         .retained = retains_nothing},
        {.name = "Dropout",
         .relate = relate_unary,
         .build = build_dropout,
         .retained = retains_nothing,
         .hidden_bytes = hidden_by_dropout},
        {.name = "BatchNormalization",
         .least_inputs = 3,
         .most_inputs = 3,
         .relate = relate_batch_normalization,
         .build = build_batch_normalization,
         .retained = retains_inputs,
         .hidden_bytes = hidden_by_batch_normalization},
        {.name = "FixedBatchNormalization",
         .least_inputs = 5,
         .most_inputs = 5,
         .relate = relate_batch_normalization,
         .build = build_fixed_batch_normalization,
         .retained = retained_by_fixed},
    };
    return all;
  }();
  return rules;
}

}  // namespace tenon::documents::chainer
