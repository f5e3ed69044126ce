#include "passes/gradient.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "base/text.h"
#include "ops/definition/var_ops.h"
#include "passes/definition/pass.h"
#include "passes/dynamic_attributes.h"

namespace tenon::passes {
namespace {

bool is_float_tensor(const Graph& graph, ValueId value) {
  const Type& type = graph.value(value).type;
  return type.is_tensor() && is_float(type.tensor().dtype);
}

std::vector<ValueId> named(const Graph& graph, const std::vector<std::string>& names,
                           const std::vector<ValueId>& all) {
  std::vector<ValueId> found;
  for (const std::string& name : names) {
    const ValueId value = graph.find(name);
    if (!value) {
      std::vector<std::string> known;
      for (ValueId other : all) known.push_back(graph.value(other).name);
      throw Error(concat("gradient: there is no value '", name, "'"), ErrorKind::Usage)
          .hint(suggest_name(name, known));
    }
    if (!is_float_tensor(graph, value)) {
      throw Error(concat("gradient: '", name, "' is no tensor of floating numbers"),
                  ErrorKind::Usage)
          .got(graph.value(value).type);
    }
    found.push_back(value);
  }
  if (!names.empty()) return found;
  for (ValueId value : all) {
    if (is_float_tensor(graph, value)) found.push_back(value);
  }
  return found;
}

}  // namespace

Graph with_gradients(Graph graph, const GradientOptions& options) {
  resolve_dynamic_attributes(graph);  // rules only handle plain attributes
  const std::vector<ValueId> outputs = graph.outputs();
  const std::vector<ValueId> of = named(graph, options.of, outputs);
  const std::vector<ValueId> by = named(graph, options.by, graph.inputs());
  Builder builder(graph);
  std::vector<Flow> flows;
  std::vector<Var> xs;
  const std::vector<ValueId> given =
      options.flows.empty() ? std::vector<ValueId>() : named(graph, options.flows, outputs);
  if (!given.empty() && given.size() != of.size())
    throw Error("gradient: there is not one flow for each value", ErrorKind::Usage);
  for (std::size_t k = 0; k < of.size(); ++k) {
    const Var y(&builder, of[k].index());
    const Dims dims = builder.type(y).tensor().dims;
    flows.push_back({y, given.empty() ? expand_to(builder.scalar(1, y), dims)
                                      : Var(&builder, given[k].index())});
  }
  for (ValueId value : by) xs.emplace_back(&builder, value.index());
  OnGradient name_nodes;
  if (options.names_nodes) {
    name_nodes = [&](NodeId node, NodeId first) {
      const Node& forward = graph.node(node);
      const std::string name =
          forward.name.empty() ? graph.value(forward.results[0]).name : forward.name;
      for (std::size_t made = first.index(); made < graph.node_id_bound(); ++made)
        graph.mutable_node(NodeId(made)).name = concat("gradients/", name, "_grad");
    };
  }
  const std::vector<Var> gradients = differentiate(builder, flows, xs, name_nodes);
  for (std::size_t k = 0; k < by.size(); ++k) {
    ValueId made(gradients[k].id());
    if (!gradients[k].is_valid()) {
      const Dims dims = builder.type(xs[k]).tensor().dims;
      made = ValueId(expand_to(builder.scalar(0, xs[k]), dims).id());
    }
    // A value may be the gradient by two others, or already an output.
    if (graph.is_output(made) || !graph.value(made).producer) {
      made = ValueId(builder.call("identity", {Var(&builder, made.index())}).id());
    }
    graph.rename(made, graph.free_name(concat("d_", graph.value(by[k]).name)));
    graph.add_output(made);
  }
  graph.erase_dead();
  return graph;
}

/// Appends the gradient of the sum of all elements of the floating outputs by each floating input,
/// as outputs `d_NAME`. Reverse-mode automatic differentiation with the gradient rules of the ops.
Graph gradient(Graph graph, const PassOptions&) { return with_gradients(std::move(graph), {}); }

}  // namespace tenon::passes
