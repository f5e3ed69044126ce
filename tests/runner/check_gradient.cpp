#include "check_gradient.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "base/text.h"
#include "ir/verify.h"
#include "numbers.h"
#include "ops/definition/var_ops.h"
#include "passes/dynamic_attributes.h"
#include "reference/evaluate.h"

#include <cmath>

namespace tenon::testing {
namespace {

constexpr std::int64_t kProbesPerInput = 12;

bool is_real(const Datum& datum) { return datum.is_tensor() && is_float(datum.tensor().dtype()); }

Tensor weights_of(const Tensor& output, std::size_t position) {
  return random_tensor(output.dtype(), output.shape(), 991 + position, -1, 1);
}

double loss_of(const Graph& graph, const std::vector<Datum>& inputs) {
  const std::vector<Datum> outputs = reference::evaluate(graph, inputs);
  double total = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!is_real(outputs[k])) continue;
    const Tensor weights = weights_of(outputs[k].tensor(), k);
    for (std::int64_t i = 0; i < weights.size(); ++i)
      total += outputs[k].tensor().real_at(i) * weights.real_at(i);
  }
  return total;
}

}  // namespace

Graph with_gradients(const Graph& given, const std::vector<Datum>& inputs) {
  Graph graph = given;
  passes::resolve_dynamic_attributes(graph);
  const std::vector<Datum> outputs = reference::evaluate(graph, inputs);
  Builder builder(graph);
  std::vector<Flow> flows;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!is_real(outputs[k])) continue;
    const Var y(&builder, graph.outputs()[k].index());
    flows.push_back({y, builder.constant(weights_of(outputs[k].tensor(), k))});
  }
  std::vector<Var> xs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (is_real(inputs[k])) xs.emplace_back(&builder, graph.inputs()[k].index());
  }
  std::vector<ValueId> gradients;
  const std::vector<Var> found = differentiate(builder, flows, xs);
  for (std::size_t k = 0; k < xs.size(); ++k) {
    const Dims dims = builder.type(xs[k]).tensor().dims;
    const Var made = found[k].is_valid() ? found[k] : expand_to(builder.scalar(0, xs[k]), dims);
    gradients.emplace_back(made.id());
  }
  graph.set_outputs(std::move(gradients));
  graph.erase_dead();
  verify(graph);
  return graph;
}

std::string gradient_failure(const Graph& graph, const std::vector<Datum>& inputs, Kinks kinks) {
  const std::vector<Datum> slopes = reference::evaluate(with_gradients(graph, inputs), inputs);
  std::size_t at = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_real(inputs[k])) continue;
    const Tensor& slope = slopes[at++].tensor();
    const Tensor& x = inputs[k].tensor();
    const std::string& name = graph.value(graph.inputs()[k]).name;
    if (x.dtype() != DType::F64) throw Error(concat("input '", name, "' should be f64"));
    if (slope.shape() != x.shape())
      return concat("the gradient by ", name, " is ", slope.type(), " for ", x.type());
    const std::int64_t step = std::max<std::int64_t>(1, x.size() / kProbesPerInput);
    for (std::int64_t i = 0; i < x.size(); i += step) {
      const double h = 1e-5 * std::max(1.0, std::abs(x.real_at(i)));
      const auto loss_at = [&](double moved) {
        std::vector<Datum> others = inputs;
        Tensor changed = x;
        changed.set_real(i, moved);
        others[k] = changed;
        return loss_of(graph, others);
      };
      const double above = loss_at(x.real_at(i) + h), under = loss_at(x.real_at(i) - h);
      const double expected = (above - under) / (2 * h);
      const double actual = slope.real_at(i);
      if (std::abs(actual - expected) > 1e-6 + 1e-4 * std::abs(expected)) {
        const double here = loss_at(x.real_at(i));
        const double bend = std::abs((above - here) - (here - under)) / h;
        if (kinks == Kinks::LeftOut && bend > 1e-3 * std::max(1.0, std::abs(expected))) continue;
        return concat("the gradient by ", name, "[", i, "] is ", format_real(actual),
                      ", finite differences say ", format_real(expected));
      }
    }
  }
  return "";
}

}  // namespace tenon::testing
