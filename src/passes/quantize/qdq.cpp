#include "passes/quantize/qdq.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tenon::passes {
namespace {

constexpr std::string_view kMoves[] = {"max_pool",  "transpose", "reshape", "squeeze",
                                       "unsqueeze", "identity",  "slice"};

const TensorType* tensor_type(const Graph& graph, ValueId value) {
  if (!value || !graph.value(value).type.is_tensor()) return nullptr;
  return &graph.value(value).type.tensor();
}

bool is_f32(const Graph& graph, ValueId value) {
  const TensorType* type = tensor_type(graph, value);
  return type && type->dtype == DType::F32;
}

// Returns the value whose elements this one holds, found through moves.
ValueId before_moves(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (!producer) return value;
    const Node& node = graph.node(producer);
    const bool moves =
        std::ranges::find(kMoves, node.op->name) != std::end(kMoves) && node.operands.front();
    const bool has_one_result =
        std::ranges::count_if(node.results, [](ValueId result) { return bool(result); }) == 1;
    if (!moves || !has_one_result || !is_f32(graph, node.operands.front()) ||
        graph.constant_of(node.operands.front()))
      return value;
    value = node.operands.front();
  }
}

std::size_t outputs_axis(const Node& node) { return node.op->name == "conv" ? 0 : 1; }

std::string refusal_of(const Graph& graph, const Node& node, bool only_weights) {
  if (only_weights && node.op->name != "matmul")
    return "weight-only quantization supports matrix products";
  const TensorType *x = tensor_type(graph, node.operands[0]),
                   *w = tensor_type(graph, node.operands[1]);
  if (!x || !w || x->dtype != DType::F32 || w->dtype != DType::F32) return "operands are not f32";
  if (!graph.constant_of(node.operands[1])) return "both operands come from the run";
  if (node.op->name == "matmul" && w->rank() != 2) return "the weights are not a matrix";
  if (graph.constant_of(node.operands[0])) return "it depends on no input";
  const Constant& weights = *graph.constant_of(node.operands[1]);
  if (weights.size() == 0) return "it has no weights";
  if (node.attrs.find("out_dtype")) return "it widens its result";
  return "";
}

// Quantized weights, with one scale per output or per group of the reduction.
struct NarrowWeights {
  Tensor values, scales;
  std::vector<float> by_output;  // empty with groups
};
NarrowWeights narrowed(const Tensor& weights, std::size_t axis, const QdqPlan& plan) {
  const Shape& shape = weights.shape();
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
  const std::int64_t outputs = shape[axis];
  const double most = plan.weight_bits == 4 ? 7 : plan.weight_bits == 7 ? 63 : 127;
  const bool has_groups = plan.group > 0;
  // Groups run along axis 0 of a matrix, whose outputs are axis 1.
  const std::int64_t groups = has_groups ? (shape[0] + plan.group - 1) / plan.group : 1;
  std::vector<double> largest(static_cast<std::size_t>(groups * outputs), 0);
  const auto slot = [&](std::int64_t k) {
    const std::int64_t output = k / inner % outputs;
    const std::int64_t group = has_groups ? k / shape[1] / plan.group : 0;
    return static_cast<std::size_t>(group * outputs + output);
  };
  const std::span<const float> given = weights.as<float>();
  for (std::int64_t k = 0; k < weights.size(); ++k) {
    largest[slot(k)] =
        std::max(largest[slot(k)], std::abs(double{given[static_cast<std::size_t>(k)]}));
  }
  NarrowWeights made;
  made.values = Tensor(plan.weight_bits == 4 ? DType::I4 : DType::I8, shape);
  made.scales = Tensor(DType::F32, has_groups ? Shape{groups, outputs} : Shape{outputs});
  const std::span<float> scales = made.scales.as_mutable<float>();
  for (std::size_t k = 0; k < largest.size(); ++k) {
    scales[k] = static_cast<float>(largest[k] > 0 ? largest[k] / most : 1);
  }
  const std::span<std::int8_t> values = made.values.as_mutable<std::int8_t>();
  for (std::int64_t k = 0; k < weights.size(); ++k) {
    const double steps =
        std::nearbyint(double{given[static_cast<std::size_t>(k)]} / double{scales[slot(k)]});
    values[static_cast<std::size_t>(k)] = static_cast<std::int8_t>(std::clamp(steps, -most, most));
  }
  if (!has_groups) made.by_output.assign(scales.begin(), scales.end());
  return made;
}

class Inserter {
 public:
  Inserter(Graph& graph, const QdqPlan& plan) : graph_(graph), plan_(plan) {}

  NarrowWeights narrow_weights(NodeId product) {
    const Node node = graph_.node(product);
    const std::size_t axis = outputs_axis(node);
    const std::string name = graph_.value(node.operands[1]).name;
    NarrowWeights weights =
        narrowed(graph_.constant_of(node.operands[1])->materialise(), axis, plan_);
    const ValueId values = constant(Constant(weights.values), product, name + "_narrow");
    const ValueId scales = constant(Constant(weights.scales), product, name + "_scale");
    Attributes attrs{{"axis", Dim(static_cast<std::int64_t>(plan_.group > 0 ? 0 : axis))}};
    if (plan_.group > 0) attrs.set("block_size", Dim(plan_.group));
    graph_.set_operand(
        product, 1,
        add("dequantize_linear", {values, scales}, std::move(attrs), product, name + "_real"));
    return weights;
  }

  void narrow_alone(NodeId product, const std::string& observed) {
    narrow_weights(product);
    if (plan_.only_weights) return;
    const ValueId left = graph_.node(product).operands.front();
    graph_.set_operand(product, 0, make_pair(left, plan_.activations.at(observed), product, ""));
  }

  void run() {
    const std::vector<QuantizableContraction> products =
        quantizable_contractions(graph_, plan_.only_weights);
    for (const QuantizableContraction& product : products) {
      if (!product.reason.empty() || plan_.skipped.contains(product.name)) continue;
      if (!plan_.only_weights && !plan_.activations.contains(graph_.value(product.observed).name))
        continue;
      chosen_.push_back(product);
    }
    // Quantizes weights and biases first: values keep their names until QDQ pairs are inserted.
    for (const QuantizableContraction& product : chosen_) narrow(product);
    if (plan_.only_weights) return;
    for (const auto& [name, activation] : plan_.activations) {
      if (const ValueId value = graph_.find(name)) put_pair(value, activation);
    }
  }

 private:
  ValueId add(std::string_view op, std::vector<ValueId> operands, Attributes attrs, NodeId before,
              const std::string& name) {
    Graph::NewNode node;
    node.op = &find_op(op);
    node.operands = std::move(operands);
    node.attrs = std::move(attrs);
    node.results = {name.empty() ? "" : graph_.free_name(name)};
    return graph_.node(graph_.add_node(std::move(node), before)).results.front();
  }
  ValueId constant(Constant value, NodeId before, const std::string& name) {
    return add("constant", {}, {{"value", std::move(value)}}, before, name);
  }

  void narrow(const QuantizableContraction& product) {
    const NarrowWeights weights = narrow_weights(product.node);
    if (plan_.only_weights) return;
    const Node node = graph_.node(product.node);
    const float input_scale = plan_.activations.at(graph_.value(product.observed).name).scale;
    if (outputs_axis(node) == 0) {
      if (node.operands.size() > 2 && node.operands[2])
        narrow_bias(product.node, 2, weights.by_output, input_scale);
      return;
    }
    // The bias after a matrix product.
    const ValueId result = node.results.front();
    if (graph_.readers(result).size() != 1 || graph_.is_output(result)) return;
    const NodeId reader = graph_.readers(result).front();
    if (graph_.node(reader).op->name != "add") return;
    const std::size_t other = graph_.node(reader).operands[0] == result ? 1 : 0;
    narrow_bias(reader, other, weights.by_output, input_scale);
  }

  void narrow_bias(NodeId node, std::size_t position, const std::vector<float>& weight_scales,
                   float input_scale) {
    const ValueId bias = graph_.node(node).operands[position];
    const Constant* stored = graph_.constant_of(bias);
    if (!stored || stored->dtype() != DType::F32 || stored->shape().size() != 1) return;
    if (stored->size() != static_cast<std::int64_t>(weight_scales.size())) return;
    const Tensor given = stored->materialise();
    Tensor scales(DType::F32, given.shape()), values(DType::I32, given.shape());
    for (std::int64_t k = 0; k < given.size(); ++k) {
      const float scale = input_scale * weight_scales[static_cast<std::size_t>(k)];
      const double steps = std::nearbyint(given.real_at(k) / double{scale});
      if (!(std::abs(steps) < double{1 << 30})) return;  // stays a float
      scales.as_mutable<float>()[static_cast<std::size_t>(k)] = scale;
      values.set_integer(k, static_cast<std::int64_t>(steps));
    }
    const std::string name = graph_.value(bias).name;
    const ValueId narrow = constant(Constant(std::move(values)), node, name + "_narrow");
    const ValueId scale = constant(Constant(std::move(scales)), node, name + "_scale");
    graph_.set_operand(
        node, position,
        add("dequantize_linear", {narrow, scale}, {{"axis", Dim(0)}}, node, name + "_real"));
  }

  // Inserts a quantize-dequantize pair; returns the dequantized value.
  ValueId make_pair(ValueId value, const QdqPlan::Activation& activation, NodeId before,
                    const std::string& name) {
    const auto named = [&](const char* ending) {
      return name.empty() ? std::string() : name + ending;
    };
    const ValueId scale =
        constant(Constant(Tensor::scalar(DType::F32, activation.scale)), before, named("_scale"));
    const ValueId zero = constant(
        Constant(Tensor::scalar(activation.dtype, static_cast<double>(activation.zero_point))),
        before, named("_zero"));
    const ValueId narrow =
        add("quantize_linear", {value, scale, zero}, {}, before, named("_narrow"));
    return add("dequantize_linear", {narrow, scale, zero}, {}, before, named("_real"));
  }

  // Inserts a quantize-dequantize pair between the value and all of its readers.
  void put_pair(ValueId value, const QdqPlan::Activation& activation) {
    const std::vector<NodeId> readers = graph_.readers(value);
    if (readers.empty()) return;
    // Inserts before the first reader in graph order.
    NodeId before;
    for (const NodeId id : graph_.nodes_in_order()) {
      if (std::ranges::find(readers, id) == readers.end()) continue;
      before = id;
      break;
    }
    const std::string name =
        graph_.value(value).name;  // a copy, because adding values moves the graph's own
    const ValueId real = make_pair(value, activation, before, name);
    for (const NodeId reader : readers) {
      const std::vector<ValueId> operands = graph_.node(reader).operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k] == value) graph_.set_operand(reader, k, real);
      }
    }
  }

  Graph& graph_;
  const QdqPlan& plan_;
  std::vector<QuantizableContraction> chosen_;
};

}  // namespace

std::vector<QuantizableContraction> quantizable_contractions(const Graph& graph,
                                                             bool only_weights) {
  std::vector<QuantizableContraction> products;
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (node.op->name != "conv" && node.op->name != "matmul") continue;
    QuantizableContraction product{
        id, graph.value(node.results.front()).name, refusal_of(graph, node, only_weights), 1, {}};
    const TensorType* result = tensor_type(graph, node.results.front());
    if (outputs_axis(node) == 1 && result) product.outputs_axis = result->rank() - 1;
    if (product.reason.empty()) product.observed = before_moves(graph, node.operands.front());
    products.push_back(std::move(product));
  }
  return products;
}

std::vector<ValueId> quantizable_joins(const Graph& graph,
                                       const std::vector<QuantizableContraction>& products) {
  std::set<ValueId> found, made;
  for (const QuantizableContraction& product : products) {
    if (product.reason.empty()) found.insert(product.observed);
  }
  std::vector<ValueId> joins;
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (node.op->name != "add" || graph.constant_of(node.operands[0]) ||
        graph.constant_of(node.operands[1]))
      continue;
    // The other operand of the add may stay in registers as the result of its producer.
    const bool is_first_known = found.contains(node.operands[0]),
               is_second_known = found.contains(node.operands[1]);
    if (is_first_known || is_second_known || !is_f32(graph, node.operands[0]) ||
        !is_f32(graph, node.operands[1]))
      continue;
    if (tensor_type(graph, node.operands[0])->dims != tensor_type(graph, node.operands[1])->dims)
      continue;
    const auto comes_from_product = [&](ValueId value) {
      const NodeId producer = graph.value(value).producer;
      return producer &&
             (graph.node(producer).op->name == "conv" || graph.node(producer).op->name == "matmul");
    };
    if (comes_from_product(node.operands[0]) && comes_from_product(node.operands[1]))
      joins.push_back(node.operands[1]);
  }
  return joins;
}

bool is_quantized(const Graph& graph) {
  for (const NodeId id : graph.nodes_in_order()) {
    const std::string& op = graph.node(id).op->name;
    if (op == "quantize_linear" || op == "dequantize_linear" || op == "requantize" ||
        op == "simulated_quantize")
      return true;
    // Integer sums, as other pipelines leave them.
    const AttrValue* sums = graph.node(id).attrs.find("out_dtype");
    if (sums && *std::get_if<DType>(sums) == DType::I32) return true;
  }
  return false;
}

void require_floats(const Graph& graph) {
  if (!is_quantized(graph)) return;
  throw Error("the model is quantized already", ErrorKind::Usage)
      .expected("a model of floats")
      .got("one that quantizes or dequantizes values")
      .hint("tenon compile and tenon run take it as it is");
}

Graph lay_out_weights(Graph graph) {
  for (const NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) != "matmul") continue;
    const ValueId weights = graph.node(id).operands[1];
    const NodeId maker = graph.value(weights).producer;
    if (!maker || graph.op_name(maker) != "transpose") continue;
    const Constant* stored = graph.constant_of(graph.node(maker).operands[0]);
    if (stored == nullptr || stored->dtype() != DType::F32 || stored->shape().size() != 2) continue;
    if (tensor_type(graph, weights)->dims ==
        tensor_type(graph, graph.node(maker).operands[0])->dims)
      continue;  // a square matrix, or not transposed
    const Tensor from = stored->materialise();
    const std::int64_t rows = from.shape()[0], columns = from.shape()[1];
    Tensor to(DType::F32, {columns, rows});
    const std::span<const float> read = from.as<float>();
    const std::span<float> written = to.as_mutable<float>();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        written[static_cast<std::size_t>(j * rows + i)] =
            read[static_cast<std::size_t>(i * columns + j)];
    Graph::NewNode constant;
    constant.op = &find_op("constant");
    constant.attrs.set("value", Constant(std::move(to)));
    const ValueId made = graph.node(graph.add_node(std::move(constant), id)).results.front();
    graph.set_operand(id, 1, made);
  }
  graph.erase_dead();
  return graph;
}

Graph quantize_contraction(Graph graph, NodeId product, const std::string& observed,
                           const QdqPlan& plan) {
  Inserter(graph, plan).narrow_alone(product, observed);
  return graph;
}

Graph insert_qdq(Graph graph, const QdqPlan& plan) {
  Inserter(graph, plan).run();
  graph.erase_dead();
  return graph;
}

}  // namespace tenon::passes
