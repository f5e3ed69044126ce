#include "train/document_step.h"

#include "driver/pipeline.h"
#include "models/model_source.h"
#include "ops/definition/registry.h"
#include "passes/gradient.h"
#include "passes/train/with_loss.h"
#include "train/options.h"
#include "zoo/zoo.h"

#include <algorithm>

namespace tenon::train {
namespace {

// Enables dropout in a built-in network.
std::string with_dropout(const std::string& model) {
  constexpr std::string_view zoo = "zoo:", parameter = "dropout";
  if (!model.starts_with(zoo) || model.find("dropout=") != std::string::npos) return model;
  const std::string name = model.substr(zoo.size(), model.find('?') - zoo.size());
  for (const zoo::Network& network : zoo::networks()) {
    const bool has_dropout = std::ranges::any_of(
        network.parameters, [&](const zoo::Parameter& each) { return each.name == parameter; });
    if (network.name == name && has_dropout)
      return concat(model, model.find('?') == std::string::npos ? "?" : ",", parameter, "=1");
  }
  return model;
}

// Returns the floating constants, except images stored in a network.
std::vector<std::string> parameters_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.nodes_in_order()) {
    const std::vector<ValueId>& results = graph.node(id).results;
    const Constant* constant = results.empty() ? nullptr : graph.constant_of(results[0]);
    if (constant == nullptr || !is_float(constant->dtype()) || constant->shape().empty()) continue;
    const std::vector<NodeId>& readers = graph.readers(results[0]);
    const bool is_data = std::ranges::all_of(readers, [&](NodeId reader) {
      const Node& node = graph.node(reader);
      // op-name: how weights are read
      return node.op->name == "conv" && node.operands[0] == results[0];
    });
    if (!is_data) names.push_back(graph.value(results[0]).name);
  }
  return names;
}

// Biases are variables of rank 1, which TensorFlow adds along channels in any layout: undoes a
// pass's reshape to [1, C, 1, 1].
void keep_biases(Graph& graph) {
  for (const NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "add") continue;  // op-name: the op that adds a bias
    const ValueId laid = graph.node(id).operands[1];
    const Constant* bias = graph.constant_of(laid);
    const Shape shape = bias == nullptr ? Shape() : bias->shape();
    if (shape.size() != 4 || shape[0] != 1 || shape[2] != 1 || shape[3] != 1) continue;
    std::string name = graph.value(laid).name;
    const std::string_view suffix = "_nchw";
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    const auto add_before = [&](const char* op, std::vector<ValueId> operands, Attributes attrs,
                                std::string result) {
      Graph::NewNode node{&find_op(op), std::move(operands), std::move(attrs), {}, {result}, ""};
      return graph.node(graph.add_node(std::move(node), id)).results[0];
    };
    Attributes value, along;
    value.set("value", Constant(bias->materialise().reshaped({shape[1]})));
    along.set("shape", Dims{Dim(-1), Dim(1), Dim(1)});
    const ValueId vector = add_before("constant", {}, std::move(value), graph.free_name(name));
    graph.set_operand(id, 1, add_before("reshape", {vector}, std::move(along), ""));
  }
  graph.erase_dead();
}

// Orders the outputs by node name, as TensorFlow sorts fetches. The gradient of half the sum of
// squares of an output is that output.
Graph tensorflow_step(Graph graph, const std::string& of, bool is_l2) {
  passes::GradientOptions options{.of = {of}, .by = parameters_of(graph), .names_nodes = true};
  if (is_l2) options.flows = {of};
  const std::size_t before = graph.outputs().size();
  graph = passes::with_gradients(std::move(graph), options);
  std::vector<ValueId> gradients(graph.outputs().begin() + static_cast<std::ptrdiff_t>(before),
                                 graph.outputs().end());
  const auto name_of = [&](ValueId value) { return graph.node(graph.value(value).producer).name; };
  std::ranges::stable_sort(gradients, {}, name_of);
  graph.set_outputs(gradients);
  graph.erase_dead();
  driver::PipelineOptions passes;
  passes.passes = {"choose-layouts"};
  passes.pass_options.layout_mode = "tensorflow";
  graph = driver::run_pipeline(std::move(graph), passes);
  keep_biases(graph);
  return graph;
}

}  // namespace

Graph document_step(const std::string& model, const std::string& format, const std::string& loss) {
  Graph graph = models::ModelSource(with_dropout(model)).graph();
  const bool is_chainer = format == "chainer", is_tensorflow = format == "tensorscope";
  const bool is_l2 = loss == "l2";
  passes::LossOptions options;
  if (is_chainer) options.ignore_label = -1;
  if (is_l2) {
    options.kind = loss;
  } else if (!loss.empty()) {
    set_loss(options, loss);
  }
  if (!is_l2 || !is_tensorflow)
    graph = passes::with_loss(std::move(graph), options, is_chainer ? DType::I32 : DType::I64);
  if (is_chainer) return graph;
  const std::string of = graph.value(graph.outputs().at(0)).name;
  if (is_tensorflow) return tensorflow_step(std::move(graph), of, is_l2);
  const passes::GradientOptions gradients{.of = {of}, .by = parameters_of(graph)};
  return passes::with_gradients(std::move(graph), gradients);
}

}  // namespace tenon::train
