#include "base/error.h"
#include "base/pattern.h"
#include "base/text.h"
#include "passes/train/step_builder.h"

#include <algorithm>

namespace tenon::passes::training {
namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& text) { return Pattern(text).matches(name); });
}

// Returns whether a node reads the value as data and not as an attribute.
bool is_read_as_data(const Graph& graph, ValueId value) {
  for (NodeId reader : graph.readers(value)) {
    const Node& node = graph.node(reader);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const bool is_attribute =
          k < node.op->operands.size() && node.op->operands[k].is_dynamic_attribute;
      if (node.operands[k] == value && !is_attribute) return true;
    }
  }
  return false;
}

// Running statistics of batch norms are not trained.
bool is_statistic(const Graph& graph, ValueId value) {
  return std::ranges::any_of(graph.readers(value), [&](NodeId reader) {
    const Node& node = graph.node(reader);
    if (node.op->name != "batch_norm") return false;  // op-name: the op whose statistics these are
    return value == node.operands[*node.op->operand_index("mean")] ||
           value == node.operands[*node.op->operand_index("variance")];
  });
}

bool is_chosen(const Graph& graph, ValueId value, const TrainOptions& options) {
  const std::string& name = graph.value(value).name;
  if (is_statistic(graph, value) || matches_any(options.frozen, name)) return false;
  if (!options.parameters.empty()) return matches_any(options.parameters, name);
  return graph.value(value).type.tensor().rank() >= 1 && is_read_as_data(graph, value);
}

}  // namespace

std::size_t Draft::add_state(std::string name, Constant initial) {
  const ValueId now = graph.add_input(name, initial.type());
  states.push_back({std::move(name), now, now, std::move(initial)});
  return states.size() - 1;
}

std::size_t Draft::add_split_state(std::string name, std::string whole, Constant initial,
                                   std::int64_t rank_count) {
  const std::int64_t piece = (initial.size() + rank_count - 1) / rank_count;
  const ValueId now = graph.add_input(name, TensorType{initial.dtype(), {Dim(piece)}, {}});
  State::Split split{std::move(whole), initial.shape()};
  states.push_back({std::move(name), now, now, std::move(initial), std::move(split)});
  return states.size() - 1;
}

std::size_t Draft::make_state(ValueId constant) {
  const NodeId node = graph.value(constant).producer;
  const Constant initial = *graph.constant_of(constant);
  const std::string name = graph.value(constant).name;
  const Type type = graph.value(constant).type;
  graph.rename(constant, graph.free_name(name + "_initial"));
  const std::size_t state = add_state(name, initial);
  graph.set_type(states[state].now, type);
  graph.replace_uses(constant, states[state].now);
  graph.erase(node);
  return state;
}

StatefulGraph Draft::finish(std::vector<ValueId> outputs) {
  StatefulGraph made;
  for (const DraftState& state : states) {
    const auto input = std::ranges::find(graph.inputs(), state.now) - graph.inputs().begin();
    made.states.push_back(
        {state.name, static_cast<std::size_t>(input), outputs.size(), state.initial, state.split});
    outputs.push_back(state.next);
  }
  graph.set_outputs(std::move(outputs));
  graph.erase_dead();
  made.graph = std::move(graph);
  return made;
}

std::vector<std::size_t> make_parameters(Draft& draft, const TrainOptions& options) {
  const Graph& graph = draft.graph;
  std::vector<ValueId> chosen;
  for (NodeId id : graph.nodes_in_order()) {
    const ValueId value =
        graph.node(id).results.empty() ? ValueId{} : graph.node(id).results.front();
    const Constant* constant = value ? graph.constant_of(value) : nullptr;
    if (!constant || !is_float(constant->dtype()) || constant->size() == 0) continue;
    if (is_chosen(graph, value, options)) chosen.push_back(value);
  }
  std::vector<std::size_t> parameters;
  for (ValueId value : chosen) parameters.push_back(draft.make_state(value));
  return parameters;
}

void make_statistics(Draft& draft) {
  const Graph& graph = draft.graph;
  std::vector<ValueId> statistics;
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).results.empty()) continue;
    const ValueId value = graph.node(id).results.front();
    if (value && graph.constant_of(value) && is_statistic(graph, value))
      statistics.push_back(value);
  }
  for (ValueId value : statistics) draft.make_state(value);
}

}  // namespace tenon::passes::training

namespace tenon::passes {

Graph with_states(Graph model, const std::vector<std::pair<std::string, Tensor>>& states) {
  for (const auto& [name, tensor] : states) {
    const ValueId value = model.find(name);
    const Constant* constant = value ? model.constant_of(value) : nullptr;
    if (!constant) continue;  // optimizer state, which the model lacks
    if (constant->dtype() != tensor.dtype() || constant->shape() != tensor.shape()) {
      throw Error(concat("state '", name, "' does not fit the model's constant"))
          .expected(constant->type())
          .got(tensor.type());
    }
    model.set_attribute(model.value(value).producer, "value", Constant(tensor));
  }
  return model;
}

}  // namespace tenon::passes
