#include "ops/definition/elementwise.h"
#include "passes/train/step_builder.h"

#include <limits>

namespace tenon::passes {

StatefulGraph skip_nonfinite_updates(StatefulGraph step) {
  Graph& graph = step.graph;
  Builder build(graph);
  std::vector<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
  const ValueId loss_value = graph.find(kLoss);
  if (step.states.empty() || !loss_value || !graph.is_output(loss_value)) return step;
  const Var loss{&build, loss_value.index()};
  // False for NaN too.
  const Var is_finite = call(
      "less", {call("abs", {loss}), build.scalar(std::numeric_limits<double>::infinity(), loss)});
  for (const State& state : step.states) {
    const ValueId now = graph.inputs()[state.input], next = outputs[state.output];
    if (next == now) continue;
    const Var held = choose(is_finite, Var{&build, next.index()}, Var{&build, now.index()});
    outputs[state.output] = ValueId(held.id());
  }
  graph.set_outputs(std::move(outputs));
  return step;
}

StatefulGraph with_recurrent_states(StatefulGraph step, bool is_for_device) {
  if (!is_for_device) step = skip_nonfinite_updates(std::move(step));
  declare_states(step, !is_for_device);
  return step;
}

}  // namespace tenon::passes
