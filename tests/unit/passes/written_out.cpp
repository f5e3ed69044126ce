#include "unit/passes/written_out.h"

#include "tenon/builder.h"

#include <map>
#include <numbers>

namespace tenon::testing {
namespace {

using Integers = Attr::Integers;

Var mean(Var x, std::int64_t axis) {
  return x.builder().call("reduce_mean", {x}, {{"axes", Integers{axis}}});
}

Var layer_norm(Var x, Var scale, Var bias, double epsilon) {
  Builder& build = x.builder();
  const Var centred = x - mean(x, -1);
  const Var variance = mean(build.call("pow", {centred, build.scalar(2, x)}), -1);
  const Var y = centred / build.call("sqrt", {variance + epsilon}) * scale;
  return bias.is_valid() ? y + bias : y;
}

Var gelu(Var x, bool by_tanh) {
  Builder& build = x.builder();
  if (!by_tanh) return x * (build.call("erf", {x / std::numbers::sqrt2}) + 1.0) * 0.5;
  const Var cubic = build.call("pow", {x, build.scalar(3, x)}) * 0.044715 + x;
  return x * 0.5 * (1.0 + build.call("tanh", {cubic * 0.7978845608028654}));
}

Var softmax(Var x) {
  Builder& build = x.builder();
  const std::vector<Attr> last{{"axes", Integers{-1}}};
  const Var e = build.call("exp", {x - build.call("reduce_max", {x}, last)});
  return e / build.call("reduce_sum", {e}, last);
}

// [0, 0, 12, 64] as extents looked up in the shape of x.
Var reshape(Var x, const Dims& shape) {
  Builder& build = x.builder();
  const Var extents = build.call("shape", {x});
  std::vector<Var> parts;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == Dim(0)) {
      const Var place =
          build.constant(Constant(Tensor::scalar(DType::I64, static_cast<double>(axis))));
      const Var extent = build.call("gather", {extents, place});
      parts.push_back(build.call("unsqueeze", {extent}, {{"axes", Integers{0}}}));
    } else {
      parts.push_back(build.integers({shape[axis].constant()}));
    }
  }
  const Var all = build.call("concat", parts, {{"axis", 0}});
  return build.call("reshape", {x, all});
}

template <class T>
T attribute(const Node& node, const char* name, T otherwise) {
  const AttrValue* value = node.attrs.find(name);
  return value ? std::get<T>(*value) : otherwise;
}

Var written_out_node(const Node& node, const std::vector<Var>& operands) {
  const std::string& op = node.op->name;
  if (op == "layer_norm") {
    const Var bias = operands.size() > 2 ? operands[2] : Var();
    return layer_norm(operands[0], operands[1], bias, attribute(node, "epsilon", 1e-5));
  }
  if (op == "gelu") return gelu(operands[0], node.attrs.find("approximate") != nullptr);
  if (op == "softmax") return softmax(operands[0]);
  if (op == "reshape" && operands.size() == 1 && !node.attrs.find("allow_zero")) {
    const Dims shape = attribute(node, "shape", Dims{});
    if (all_constant(shape)) return reshape(operands[0], shape);
  }
  return {};
}

}  // namespace

Graph written_out(const Graph& graph) {
  Builder build(graph.name);
  std::map<ValueId, Var> made;
  for (ValueId input : graph.inputs()) {
    made[input] = build.input(graph.value(input).name, graph.value(input).type);
  }
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    std::vector<Var> operands;
    for (ValueId operand : node.operands) operands.push_back(operand ? made.at(operand) : Var());
    if (const Var y = written_out_node(node, operands); y.is_valid()) {
      made[node.results.front()] = y;
      continue;
    }
    std::vector<std::string> names;
    for (ValueId result : node.results)
      names.push_back(result ? build.graph().free_name(graph.value(result).name) : "_");
    const std::vector<Var> results =
        build.call_all(node.op->name, operands, node.attrs, names, node.bodies);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (node.results[k]) made[node.results[k]] = results[k];
    }
  }
  for (ValueId output : graph.outputs()) build.output(made.at(output));
  return build.take();
}

std::size_t count_of(const Graph& graph, std::string_view op) {
  std::size_t count = 0;
  for (NodeId id : graph.nodes_in_order()) count += graph.op_name(id) == op ? 1U : 0U;
  return count;
}

}  // namespace tenon::testing
