#include "base/error.h"
#include "ops/definition/registry.h"
#include "passes/compat/relay/stages.h"

#include <cmath>

namespace tenon::passes::relay_quantize {
namespace {

class Preparer {
 public:
  explicit Preparer(Graph& graph) : graph_(graph) {}

  void run() {
    for (const NodeId id : graph_.nodes_in_order()) {
      const std::string_view op = graph_.op_name(id);
      if (op == "batch_norm") split_norm(id);
      if (op == "conv") split_bias(id);
      if (op == "add" || op == "mul") put_constant_right(id);
    }
    graph_.erase_dead();
  }

  void split_biases() {
    for (const NodeId id : graph_.nodes_in_order()) {
      if (graph_.op_name(id) == "conv") split_bias(id);
    }
    graph_.erase_dead();
  }

 private:
  const Constant* constant_at(NodeId id, std::size_t position) const {
    const Node& node = graph_.node(id);
    const bool is_given = position < node.operands.size() && node.operands[position];
    return is_given ? graph_.constant_of(node.operands[position]) : nullptr;
  }

  const TensorType* type_of(ValueId value) const {
    const Type& type = graph_.value(value).type;
    return type.is_tensor() ? &type.tensor() : nullptr;
  }

  ValueId add(std::string_view op, std::vector<ValueId> operands, Attributes attrs, NodeId before,
              const std::string& name) {
    Graph::NewNode node;
    node.op = &find_op(op);
    node.operands = std::move(operands);
    node.attrs = std::move(attrs);
    node.results = {graph_.free_name(name)};
    return graph_.node(graph_.add_node(std::move(node), before)).results.front();
  }

  // Adds a constant with one number per position along the axis, in a shape that broadcasts.
  ValueId along(std::size_t axis, std::size_t rank, const std::vector<double>& numbers,
                NodeId before, const std::string& name) {
    Shape shape(rank - axis, 1);
    shape.front() = static_cast<std::int64_t>(numbers.size());
    return add("constant", {}, {{"value", Constant(Tensor::of(DType::F32, shape, numbers))}},
               before, name);
  }

  // Makes the node's readers read the value instead, which takes its name.
  void replace(NodeId id, ValueId by) {
    const ValueId was = graph_.node(id).results.front();
    graph_.replace_uses(was, by);
    graph_.swap_names(was, by);
  }

  void split_norm(NodeId id) {
    const Node node = graph_.node(id);
    const TensorType* image = type_of(node.operands.front());
    if (!image || image->rank() < 2 || image->dtype != DType::F32) return;
    std::vector<std::vector<double>> given;
    for (std::size_t k = 1; k < 5; ++k) {
      const Constant* constant = constant_at(id, k);
      if (constant == nullptr) return;
      given.push_back(constant->materialise().reals());
    }
    const AttrValue* attr = node.attrs.find("epsilon");
    const double epsilon = attr ? std::get<double>(*attr) : 1e-5;
    const AttrValue* stated = node.attrs.find("axis");
    const std::int64_t place = stated ? std::get<Dim>(*stated).constant() : 1;
    const std::size_t rank = image->rank();
    const auto axis =
        static_cast<std::size_t>(place < 0 ? place + static_cast<std::int64_t>(rank) : place);
    std::vector<double> scale, shift;
    for (std::size_t k = 0; k < given[0].size(); ++k) {
      const double s = given[0][k] / std::sqrt(given[3][k] + epsilon);
      scale.push_back(s);
      shift.push_back(given[1][k] - given[2][k] * s);
    }
    const std::string name = graph_.value(node.results.front()).name;
    const ValueId product =
        add("mul", {node.operands.front(), along(axis, rank, scale, id, name + "_scale")}, {}, id,
            name + "_scaled");
    replace(id, add("add", {product, along(axis, rank, shift, id, name + "_shift")}, {}, id, name));
  }

  void split_bias(NodeId id) {
    const Node node = graph_.node(id);
    const Constant* bias = constant_at(id, 2);
    const TensorType* image = type_of(node.results.front());
    if (bias == nullptr || !image || image->layout.block('C') != 1) return;
    const std::size_t axis = image->layout.axis('C').value_or(1), rank = image->rank();
    const std::vector<double> numbers = bias->materialise().reals();
    const std::string name = graph_.value(node.results.front()).name;
    const ValueId product =
        add("conv", {node.operands[0], node.operands[1]}, node.attrs, id, name + "_product");
    graph_.mutable_node(graph_.value(product).producer).name = node.name;
    replace(id,
            add("add", {product, along(axis, rank, numbers, id, name + "_bias")}, {}, id, name));
  }

  void put_constant_right(NodeId id) {
    const Node node = graph_.node(id);
    if (!graph_.constant_of(node.operands[0]) || graph_.constant_of(node.operands[1])) return;
    graph_.set_operand(id, 0, node.operands[1]);
    graph_.set_operand(id, 1, node.operands[0]);
  }

  Graph& graph_;
};

}  // namespace

bool has_scales(const Graph& graph) {
  for (const NodeId id : graph.nodes_in_order()) {
    const std::string_view op = graph.op_name(id);
    if (op == "batch_norm" || op == "mul" || op == "div") return true;
  }
  return false;
}

Graph prepare(Graph graph) {
  Preparer(graph).run();
  return graph;
}

Graph with_biases_apart(Graph graph) {
  Preparer(graph).split_biases();
  return graph;
}

bool is_global_average(const Graph& graph, NodeId node) {
  const Node& pool = graph.node(node);
  if (pool.op->name != "average_pool" || !graph.value(pool.operands[0]).type.is_tensor())
    return false;
  const TensorType& x = graph.value(pool.operands[0]).type.tensor();
  const AttrValue* kernel = pool.attrs.find("kernel_shape");
  const AttrValue* strides = pool.attrs.find("strides");
  if (x.rank() != 4 || kernel == nullptr || strides == nullptr || pool.attrs.find("pads"))
    return false;
  const std::size_t h = x.layout.axis('H').value_or(2), w = x.layout.axis('W').value_or(3);
  const Dims extents{x.dims[h], x.dims[w]};
  return std::get<Dims>(*kernel) == extents && std::get<Dims>(*strides) == extents;
}

}  // namespace tenon::passes::relay_quantize
