#include "base/error.h"
#include "base/text.h"
#include "ops/definition/elementwise.h"
#include "ops/families/normalization.h"
#include "passes/train/step_builder.h"

namespace tenon::passes {

const std::vector<std::string>& loss_kinds() {
  static const std::vector<std::string> kinds = {"softmax_cross_entropy", "sigmoid_cross_entropy",
                                                 "mse", "huber", "ctc"};
  return kinds;
}

}  // namespace tenon::passes

namespace tenon::passes::training {
namespace {

using Integers = Attr::Integers;

// Returns the output that the loss is computed from. Merges a final softmax or sigmoid into the
// loss, whose gradient is exact where theirs would underflow.
Var scores(Builder& build, const LossOptions& options, std::string_view last_op) {
  Graph& graph = build.graph();
  ValueId found;
  std::vector<std::string> known;
  for (ValueId output : graph.outputs()) {
    const Type& type = graph.value(output).type;
    if (!type.is_tensor() || !is_float(type.tensor().dtype)) continue;
    known.push_back(graph.value(output).name);
    if (!found && (options.output.empty() || options.output == known.back())) found = output;
  }
  if (!found) {
    Error error(options.output.empty()
                    ? std::string("the model has no output of floating numbers to take a loss of")
                    : concat("the model has no output '", options.output, "'"),
                ErrorKind::Usage);
    if (!known.empty()) error.hint(suggest_name(options.output, known));
    throw error;
  }
  const NodeId producer = graph.value(found).producer;
  if (producer && graph.op_name(producer) == last_op) found = graph.node(producer).operands.front();
  return {&build, found.index()};
}

Var reduced(Var losses, const LossOptions& options, bool is_each) {
  Builder& build = losses.builder();
  if (!is_each)
    return build.call(options.is_sum ? "reduce_sum" : "reduce_mean", {losses},
                      {{"keep_axes", false}});
  Integers axes;
  for (std::size_t axis = 1; axis < build.rank(losses); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis));
  return axes.empty() ? losses
                      : build.call(options.is_sum ? "reduce_sum" : "reduce_mean", {losses},
                                   {{"axes", axes}, {"keep_axes", false}});
}

// Moves the class axis to axis 1.
Var classes_second(Var x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.builder().rank(x));
  if (axis < 0) axis += rank;
  if (rank < 2 || axis < 1 || axis >= rank) {
    throw Error("softmax_cross_entropy: there is no such axis of classes", ErrorKind::Usage)
        .expected("an axis from 1 to ", rank - 1)
        .got(axis, " of ", x.builder().type(x));
  }
  if (axis == 1) return x;
  Integers perm{0, axis};
  for (std::int64_t other = 1; other < rank; ++other) {
    if (other != axis) perm.push_back(other);
  }
  return x.builder().call("transpose", {x}, {{"perm", perm}});
}

Loss softmax_cross_entropy(Builder& build, const LossOptions& options, bool is_each) {
  const Var x = classes_second(scores(build, options, "softmax"), options.axis);
  const TensorType type = build.type(x).tensor();
  TensorType target_type{DType::I64, type.dims, {}};
  target_type.dims.erase(target_type.dims.begin() + 1);
  const Var target = build.input(kTarget, Type(target_type));
  const Var log_likelihood = build.call("log_softmax", {x}, {{"axis", 1}});
  std::vector<Var> operands{log_likelihood, target};
  if (!options.class_weights.empty()) {
    const Dim classes = type.dims[1];
    if (classes.is_constant() &&
        classes.constant() != static_cast<std::int64_t>(options.class_weights.size())) {
      throw Error("softmax_cross_entropy: a weight for each class is needed", ErrorKind::Usage)
          .expected(classes)
          .got(options.class_weights.size());
    }
    const auto count = static_cast<std::int64_t>(options.class_weights.size());
    operands.push_back(build.constant(Tensor::of(type.dtype, {count}, options.class_weights)));
  }
  std::vector<Attr> attrs{{"reduction", is_each ? "none" : options.is_sum ? "sum" : "mean"}};
  if (options.ignore_label) attrs.emplace_back("ignore_index", *options.ignore_label);
  Loss loss{build.call("nll_loss", operands, attrs), {}};
  if (is_each) loss.loss = reduced(loss.loss, options, true);
  const Var best = build.call("arg_max", {x}, {{"axis", 1}, {"keep_axes", false}});
  Var found = cast_to(build.call("equal", {best, target}), DType::F32);
  if (options.ignore_label && !is_each) {
    const Var ignored = build.call(
        "equal", {target, build.scalar(static_cast<double>(*options.ignore_label), target)});
    const Var counts = choose(ignored, 0, 1, found);
    loss.accuracy = build.call("reduce_sum", {found * counts}, {{"keep_axes", false}}) /
                    build.call("reduce_sum", {counts}, {{"keep_axes", false}});
  } else {
    LossOptions mean = options;
    mean.is_sum = false;
    loss.accuracy = reduced(found, mean, is_each);
  }
  return loss;
}

Var target_like(Builder& build, Var x) {
  TensorType type = build.type(x).tensor();
  type.layout = {};
  return build.input(kTarget, Type(type));
}

// max(x, 0) - x·t + log(1 + exp(-|x|)): finite for any x.
Var sigmoid_cross_entropy(Var x, Var target) {
  return call("relu", {x}) - x * target + call("softplus", {-call("abs", {x})});
}

Var huber(Var x, Var target, double delta) {
  const Var error = call("abs", {x - target});
  const Var inside = call("minimum", {error, number(delta, error)});
  return inside * inside * 0.5 + (error - inside) * delta;
}

}  // namespace

Loss add_loss(Builder& build, const LossOptions& options, bool is_each) {
  if (build.graph().find(kTarget)) {
    throw Error(concat("the model has a value '", kTarget, "' already"), ErrorKind::Usage)
        .hint("the labels that a step of training takes are called so");
  }
  if (options.kind == "softmax_cross_entropy")
    return softmax_cross_entropy(build, options, is_each);
  if (options.kind == "sigmoid_cross_entropy") {
    const Var x = scores(build, options, "sigmoid");
    return {reduced(sigmoid_cross_entropy(x, target_like(build, x)), options, is_each), {}};
  }
  if (options.kind == "mse" || options.kind == "huber") {
    const Var x = scores(build, options, "");
    const Var target = target_like(build, x);
    if (options.kind == "huber")
      return {reduced(huber(x, target, options.delta), options, is_each), {}};
    const Var error = x - target;
    return {reduced(error * error, options, is_each), {}};
  }
  if (options.kind == "ctc")
    return add_ctc_loss(build, scores(build, options, "softmax"), options, is_each);
  throw Error(concat("no loss is called '", options.kind, "'"), ErrorKind::Usage)
      .hint(suggest_name(options.kind, loss_kinds()));
}

}  // namespace tenon::passes::training
