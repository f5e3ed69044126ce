#include "autodiff/differentiate.h"
#include "base/error.h"
#include "frontends/onnx/import_node.h"

namespace tenon::frontends::onnx {
namespace {

// ONNX updates several tensors in one node: rate, step, then all xs, all gradients and so on for
// each kind of state; the outputs are all new xs, then the new states. Here each tensor gets its
// own node.
void import_steps(NodeImport& node, std::string_view op, std::size_t kinds,
                  const std::vector<Attr>& attrs) {
  const std::size_t count =
      (node.input_count() - std::min<std::size_t>(node.input_count(), 2)) / kinds;
  if (count == 0 || node.input_count() != 2 + count * kinds) {
    throw Error("the inputs do not fit together")
        .expected("a rate, a step and ", kinds, " tensors for each one that is updated")
        .got(node.input_count(), " inputs");
  }
  const std::size_t result_kinds = kinds - 1;  // all but the gradient
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<Var> operands{node.input(0), node.input(1)};
    for (std::size_t kind = 0; kind < kinds; ++kind)
      operands.push_back(node.input(2 + kind * count + k));
    const std::vector<Var> results =
        node.build.call_all(op, operands, attrs, std::vector<std::string>(result_kinds));
    for (std::size_t kind = 0; kind < result_kinds; ++kind) {
      const std::size_t output = kind * count + k;
      if (node.wants_output(output)) node.output(output, results[kind]);
    }
  }
}

void import_adagrad(NodeImport& node) {
  import_steps(node, "adagrad", 3,
               {{"rate_decay", node.real("decay_factor", 0)},
                {"epsilon", node.real("epsilon", 1e-6F)},
                {"weight_decay", node.real("norm_coefficient", 0)}});
}

void import_adam(NodeImport& node) {
  import_steps(node, "adam", 4,
               {{"alpha", node.real("alpha", 0.9F)},
                {"beta", node.real("beta", 0.999F)},
                {"epsilon", node.real("epsilon", 1e-6F)},
                {"weight_decay", node.real("norm_coefficient", 0)},
                {"weight_decay_after", node.real("norm_coefficient_post", 0)}});
}

void import_momentum(NodeImport& node) {
  import_steps(node, "momentum", 3,
               {{"alpha", node.real("alpha")},
                {"beta", node.real("beta")},
                {"weight_decay", node.real("norm_coefficient")},
                {"nesterov", node.text("mode", "standard") == "nesterov"}});
}

// The gradient of the value named `y` by the inputs named `xs`; other listed inputs are constant.
void import_gradient(NodeImport& node) {
  const std::string name = node.text("y");
  const ValueId y = node.build.graph().find(name);
  if (!y) node.unsupported(concat("y names '", name, "', which is not computed before it"));
  std::vector<Var> xs;
  for (std::size_t k = 0; k < node.texts("xs").size(); ++k) xs.push_back(node.input(k));
  node.outputs(differentiate(node.build, Var(&node.build, y.index()), xs));
}

constexpr Handler training_table[] = {
    {"Adagrad", import_adagrad, kTraining},
    {"Adam", import_adam, kTraining},
    {"Gradient", import_gradient, kTraining},
    {"Momentum", import_momentum, kTraining},
};

}  // namespace

std::span<const Handler> training_handlers() { return training_table; }

}  // namespace tenon::frontends::onnx
