#include "ops/families/body_gradient.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

// Returns the body with these input types and every inner type inferred again.
Graph with_input_types(Graph body, const std::vector<Type>& types) {
  TENON_ASSERT(body.inputs().size() == types.size(), "a type for each input of the body");
  for (std::size_t k = 0; k < types.size(); ++k) {
    if (types[k].is_known()) body.set_type(body.inputs()[k], types[k]);
  }
  for (NodeId id : body.nodes_in_order()) body.infer(id);
  return body;
}

const TensorType& known_type(const Graph& graph, ValueId value) {
  const Value& found = graph.value(value);
  if (found.type.is_tensor()) return found.type.tensor();
  throw Error(concat("cannot differentiate a body: the type of '", found.name, "' is not known"),
              ErrorKind::Unsupported);
}

}  // namespace

BodyGradient::BodyGradient(const Graph& body, const std::vector<Type>& types,
                           Differentiate differentiate)
    : graph_(with_input_types(body, types)),
      body_outputs_(graph_.outputs()),
      differentiate_(differentiate),
      input_count_(graph_.inputs().size()),
      node_bound_(graph_.node_id_bound()) {}

bool BodyGradient::is_float_input(std::size_t position) const {
  const Type& type = graph_.value(input(position)).type;
  return type.is_tensor() && is_float(type.tensor().dtype);
}

ValueId BodyGradient::add_upstream(std::size_t output) {
  const ValueId value = body_outputs_.at(output);
  const TensorType type = known_type(graph_, value);
  const ValueId added =
      graph_.add_input(graph_.free_name(concat("d_", graph_.value(value).name)), type);
  // `differentiate` sets the builder of these Vars.
  flows_.push_back({Var(nullptr, value.index()), Var(nullptr, added.index())});
  return added;
}

std::vector<ValueId> BodyGradient::differentiate(const std::vector<std::size_t>& inputs) {
  Builder builder(graph_);
  const auto var = [&](ValueId value) { return Var(&builder, value.index()); };
  std::vector<Flow> flows;
  for (const Flow& flow : flows_)
    flows.push_back({Var(&builder, flow.value.id()), Var(&builder, flow.gradient.id())});
  std::vector<Var> by;
  for (std::size_t k : inputs) by.push_back(var(input(k)));
  std::vector<Var> found = differentiate_(builder, flows, by);
  std::vector<ValueId> gradients;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (!found[k].is_valid()) {
      const TensorType type = known_type(graph_, input(inputs[k]));
      found[k] = expand_to(builder.constant(Tensor::scalar(type.dtype, 0)), type.dims);
    }
    gradients.emplace_back(found[k].id());
  }
  return gradients;
}

std::pair<ValueId, ValueId> BodyGradient::add_sum(std::size_t position, ValueId value) {
  const ValueId given = input(position);
  const TensorType type = known_type(graph_, given);
  const ValueId before =
      graph_.add_input(graph_.free_name(concat("sum_", graph_.value(given).name)), type);
  Builder builder(graph_);
  const Var sum = Var(&builder, before.index()) + Var(&builder, value.index());
  return {before, ValueId(sum.id())};
}

bool BodyGradient::is_own(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  if (producer) return producer.index() < node_bound_;
  const std::vector<ValueId> own = body_inputs();
  return std::ranges::find(own, value) != own.end();
}

std::vector<ValueId> BodyGradient::read_by(const std::vector<ValueId>& values) const {
  std::vector<ValueId> read, open = values;
  IdMap<ValueId, char> is_seen(graph_.value_id_bound(), 0);
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (!value || is_seen[value] || graph_.constant_of(value)) continue;
    is_seen[value] = 1;
    if (is_own(value)) {
      read.push_back(value);
    } else if (const NodeId producer = graph_.value(value).producer) {
      for (ValueId operand : graph_.node(producer).operands) open.push_back(operand);
    }
  }
  std::ranges::sort(read, {}, &ValueId::index);
  return read;
}

Graph BodyGradient::part(const std::vector<ValueId>& inputs,
                         const std::vector<ValueId>& outputs) const {
  Graph made;
  IdMap<ValueId, ValueId> copies(graph_.value_id_bound());
  for (ValueId input : inputs) {
    if (!copies[input])
      copies[input] = made.add_input(graph_.value(input).name, graph_.value(input).type);
  }
  IdMap<ValueId, char> is_needed(graph_.value_id_bound(), 0);
  for (ValueId output : outputs) is_needed[output] = 1;
  std::vector<NodeId> nodes;
  for (NodeId id : graph_.nodes_in_order()) nodes.push_back(id);
  std::vector<NodeId> kept;
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    const Node& node = graph_.node(*id);
    const bool is_read = std::ranges::any_of(node.results, [&](ValueId result) {
      return result && is_needed[result] && !copies[result];
    });
    if (!is_read) continue;
    kept.push_back(*id);
    for (ValueId operand : node.operands) {
      if (operand) is_needed[operand] = 1;
    }
  }
  for (auto id = kept.rbegin(); id != kept.rend(); ++id) {
    const Node& node = graph_.node(*id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? copies[operand] : ValueId{});
    for (ValueId result : node.results) {
      const bool is_taken = result && copies[result];
      copy.results.push_back(!result ? "_" : is_taken ? "" : graph_.value(result).name);
    }
    const NodeId added = made.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const ValueId result = node.results[k];
      if (!result || copies[result]) continue;
      copies[result] = made.node(added).results[k];
      if (graph_.has_stated_type(result)) made.set_type(copies[result], graph_.value(result).type);
    }
  }
  for (ValueId output : outputs) made.add_output(copies[output]);
  return made;
}

std::vector<ValueId> BodyGradient::body_inputs() const {
  return {graph_.inputs().begin(),
          graph_.inputs().begin() + static_cast<std::ptrdiff_t>(input_count_)};
}

}  // namespace tenon::inline ops
