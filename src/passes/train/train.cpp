#include "passes/train/train.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "base/text.h"
#include "ops/definition/var_ops.h"
#include "passes/dynamic_attributes.h"
#include "passes/train/step_builder.h"

namespace tenon::passes {
namespace {

using namespace training;

// Explains why no gradient reaches a parameter: the ops on the path that lack one.
std::string why_nothing_flows(const Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (!node.op->no_gradient_reason.empty() && !node.operands.empty()) {
      return concat(graph.location(id), ": ", node.op->no_gradient_reason);
    }
  }
  return "it reads none of them";
}

std::vector<ValueId> outputs_of(const Loss& loss) {
  std::vector<ValueId> outputs{ValueId(loss.loss.id())};
  if (loss.accuracy.is_valid()) outputs.emplace_back(loss.accuracy.id());
  return outputs;
}

void name_result(Graph& graph, Var value, const char* name) {
  if (!value.is_valid()) return;
  if (const ValueId taken = graph.find(name))
    graph.rename(taken, graph.free_name(concat(name, "_of_model")));
  graph.rename(ValueId(value.id()), name);
}

}  // namespace

StatefulGraph train(Graph model, const TrainOptions& options) {
  resolve_dynamic_attributes(model);  // gradient rules only handle plain attributes
  Draft draft{std::move(model), {}};
  const std::vector<std::size_t> parameters = make_parameters(draft, options);
  if (parameters.empty()) {
    throw Error("no parameters to train", ErrorKind::Usage)
        .hint("parameters are floating constants of rank 1 or more, unless patterns choose others");
  }
  make_statistics(draft);
  const std::size_t step = draft.add_state(kStep, Constant(Tensor(DType::I64, {})));
  prepare_nodes(draft, step, options);

  Builder build(draft.graph);
  Loss loss = add_loss(build, options.loss, false);
  const Var scale = loss_scale(draft, build, options.optimizer);
  std::vector<Var> xs;
  for (std::size_t parameter : parameters) xs.push_back(draft.now(build, parameter));
  const DType loss_dtype = build.type(loss.loss).tensor().dtype;
  const Var seed = scale.is_valid() ? cast_to(scale, loss_dtype) : build.scalar(1, loss.loss);
  const std::vector<Var> gradients = differentiate(build, {{loss.loss, seed}}, xs);
  std::vector<Update> updates;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (gradients[k].is_valid()) updates.push_back({parameters[k], gradients[k]});
  }
  if (updates.empty()) {
    throw Error("the loss does not depend on any parameter in a way that has a gradient",
                ErrorKind::Unsupported)
        .got(why_nothing_flows(draft.graph));
  }
  const Var now = draft.now(build, step);
  GradientReduction reduction(build, options);
  if (options.micro_batches > 1) {
    for (Draft::DraftState& state :
         draft.states) {  // only running statistics have a next value yet
      if (state.next != state.now)
        state.next = ValueId(reduction.mean({&build, state.next.index()}).id());
    }
    loss = {reduction.total(loss.loss), reduction.mean(loss.accuracy)};
  }
  if (options.state_ranks > 1 || options.splits_parameters) {
    add_split_updates(draft, build, options, updates, reduction, now, scale);
  } else {
    for (Update& update : updates) update.gradient = reduction.total(update.gradient);
    add_updates(draft, build, options, updates, now, scale);
  }
  draft.set_next(step, now + 1.0);
  name_result(draft.graph, loss.loss, kLoss);
  name_result(draft.graph, loss.accuracy, kAccuracy);
  StatefulGraph step_graph = draft.finish(outputs_of(loss));
  split_concat_gradients(step_graph.graph);
  lay_out_weights(step_graph.graph);
  return step_graph;
}

StatefulGraph evaluation(Graph model, const TrainOptions& options) {
  resolve_dynamic_attributes(model);
  Draft draft{std::move(model), {}};
  make_parameters(draft, options);
  make_statistics(draft);
  Builder build(draft.graph);
  const Loss loss = add_loss(build, options.loss, true);
  name_result(draft.graph, loss.loss, kLoss);
  name_result(draft.graph, loss.accuracy, kAccuracy);
  StatefulGraph step_graph = draft.finish(outputs_of(loss));
  lay_out_weights(step_graph.graph);
  return step_graph;
}

}  // namespace tenon::passes
