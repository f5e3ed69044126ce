#include "documents/megengine/formula.h"

#include "documents/megengine/elemwise.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"
#include "frontends/node_attrs.h"

#include <algorithm>

namespace tenon::documents::megengine {
namespace {

class Counter {
 public:
  Counter(const Graph& graph, const DimBindings& symbols) : graph_(graph), symbols_(symbols) {}

  double number(const Dim& dim) const {
    return static_cast<double>(dim.substitute(symbols_).value().value_or(0));
  }
  double elements(ValueId value) const {
    if (!value || !graph_.value(value).type.is_tensor()) return 0;
    return number(element_count(graph_.value(value).type.tensor()));
  }
  double bytes(ValueId value) const {
    if (!value || !graph_.value(value).type.is_tensor()) return 0;
    return number(byte_count(graph_.value(value).type.tensor()));
  }
  // Extent of the axis `letter` of a weight, at position `plain` if the weight has no layout.
  double axis(ValueId weight, char letter, std::size_t plain) const {
    const Type& type = graph_.value(weight).type;
    if (!type.is_tensor() || type.tensor().dims.empty()) return 1;
    const TensorType& tensor = type.tensor();
    const std::size_t at = tensor.layout.axis(letter).value_or(plain);
    if (at >= tensor.rank()) return 1;
    return std::max(1.0,
                    number(tensor.dims[at]) * static_cast<double>(tensor.layout.block(letter)));
  }

  double computation(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::string& op = node.op->name;
    const auto operand = [&](std::size_t k) {
      return k < node.operands.size() ? node.operands[k] : ValueId();
    };
    const double made = node.results.empty() ? 0 : elements(node.results.front());
    if (op == "conv" && operand(1)) {
      const double bias = node.operands.size() > 2 && operand(2) ? made : 0;
      return made * 2 * elements(operand(1)) / axis(operand(1), 'O', 0) + bias;
    }
    if (op == "conv_transpose" && operand(1))
      return elements(operand(0)) * 2 * elements(operand(1)) / axis(operand(1), 'I', 0);
    if (op == "conv_weight_gradient" && operand(1)) {
      return elements(operand(1)) * 2 * made / axis(node.results.front(), 'O', 0);
    }
    if (op == "matmul" && operand(0)) {
      const Type& type = graph_.value(operand(0)).type;
      if (!type.is_tensor() || type.tensor().dims.empty()) return 0;
      return made * 2 * number(type.tensor().dims.back());
    }
    if (op == "max_pool" || op == "average_pool") return made * window(node);
    if (op.starts_with("reduce_")) return elements(operand(0));
    if (op == "concat" || op == "transpose") return made;
    if (elemwise_mode_of(op) != nullptr)
      return made * (std::max<double>(static_cast<double>(node.operands.size()), 2) - 1);
    return 0;
  }

 private:
  double window(const Node& node) const {
    double count = 1;
    if (const auto* dims = frontends::attr_of<Dims>(node, "kernel_shape")) {
      for (const Dim& dim : *dims) count *= number(dim);
    }
    return count;
  }

  const Graph& graph_;
  const DimBindings& symbols_;
};

}  // namespace

CountedWork formula_of(const Graph& graph, NodeId id, const DimBindings& symbols) {
  const Counter counter(graph, symbols);
  const Node& node = graph.node(id);
  CountedWork formula;
  for (const ValueId operand : node.operands) formula.memory += counter.bytes(operand);
  for (const ValueId result : node.results) formula.memory += counter.bytes(result);
  if (!is_fused_group(graph, id)) {
    formula.computation = counter.computation(id);
    return formula;
  }
  const Graph& body = node.bodies.front();
  const Counter inside(body, symbols);
  for (const NodeId member : body.nodes_in_order()) {
    if (!body.node(member).bodies.empty()) {
      formula.computation += formula_of(body, member, symbols).computation;
    } else {
      formula.computation += inside.computation(member);
    }
  }
  return formula;
}

}  // namespace tenon::documents::megengine
