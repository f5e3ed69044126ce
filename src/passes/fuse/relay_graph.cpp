#include "passes/fuse/relay_graph.h"

#include "expr/access.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace tenon::passes::fusing {
namespace {

// Ops whose kind in Relay differs from the kind derived from their expression.
constexpr std::array<std::pair<std::string_view, OpPattern>, 3> kRegistered = {{
    {"gather_elements", OpPattern::Injective},
    {"lrn", OpPattern::Opaque},
    {"one_hot", OpPattern::OutEWiseFusable},
}};

// Optional operands are attributes in Relay.
std::size_t argument_count(const Node& node) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const OperandDef& def = node.op->operands[std::min(k, node.op->operands.size() - 1)];
    count += node.operands[k] && !def.is_optional && !def.is_dynamic_attribute;
  }
  return count;
}

bool has_access(const NodeAccess& access, Access kind) {
  return std::ranges::find(access.operands, kind) != access.operands.end();
}

bool gives_rows_only(const Graph& graph, const Node& node, const NodeAccess& access) {
  const Dims full = squeezed(access.space);
  return std::ranges::all_of(node.results, [&](ValueId result) {
    return !result || squeezed(graph.value(result).type.tensor().dims) != full;
  });
}

bool is_inlined(const Constant& constant) {
  if (!constant.shape().empty()) return false;
  const DType dtype = constant.dtype();
  return dtype == DType::I32 || dtype == DType::I64 || dtype == DType::F32 || dtype == DType::F64 ||
         dtype == DType::Bool;
}

bool is_variadic(const OpDef& op, std::size_t position) {
  return !op.operands.empty() && op.operands.back().is_variadic &&
         position + 1 >= op.operands.size();
}

/// Numbers expressions in post-order. Iterative, because networks are deep.
class GraphIndexer {
 public:
  explicit GraphIndexer(const Graph& graph)
      : graph_(graph),
        access_(access_of_nodes(graph)),
        of_node_(graph.node_id_bound(), kNone),
        of_value_(graph.value_id_bound(), kNone) {}

  RelayGraph index() {
    for (ValueId input : graph_.inputs()) {
      of_value_[input] = add({}, OpPattern::Opaque);
      found_.expressions.back().is_seen_from_outside = true;
    }
    for (ValueId output : graph_.outputs()) visit(output);
    if (graph_.outputs().size() == 1) {
      expression(of_value_[graph_.outputs().front()]).is_seen_from_outside = true;
    } else {
      const std::uint32_t body = add({}, OpPattern::Tuple);
      expression(body).is_seen_from_outside = true;
      for (ValueId output : graph_.outputs()) use(of_value_[output], body, OpPattern::Injective);
    }
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  RelayGraph::Expression& expression(std::uint32_t index) { return found_.expressions[index]; }

  std::uint32_t add(NodeId node, OpPattern pattern) {
    found_.expressions.push_back({node, pattern, false, {}});
    return static_cast<std::uint32_t>(found_.expressions.size() - 1);
  }

  void use(std::uint32_t value, std::uint32_t consumer, OpPattern pattern) {
    expression(value).consumers.push_back({consumer, pattern});
  }

  void visit(ValueId root) {
    struct Entry {
      ValueId value;
      bool is_open = false;
    };
    std::vector<Entry> stack = {{root}};
    while (!stack.empty()) {
      const Entry top = stack.back();
      if (of_value_[top.value] != kNone) {
        stack.pop_back();
      } else if (top.is_open) {
        stack.pop_back();
        add_value(top.value);
      } else {
        stack.back().is_open = true;
        const std::vector<ValueId>& operands =
            graph_.node(graph_.value(top.value).producer).operands;
        for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) {
          if (*operand && of_value_[*operand] == kNone) stack.push_back({*operand});
        }
      }
    }
  }

  void add_value(ValueId value) {
    const NodeId id = graph_.value(value).producer;
    const Node& node = graph_.node(id);
    if (of_node_[id] == kNone) of_node_[id] = add_call(id);
    if (node.results.size() == 1) {
      of_value_[value] = of_node_[id];
      return;
    }
    of_value_[value] = add({}, OpPattern::Injective);
    use(of_node_[id], of_value_[value], OpPattern::Injective);
  }

  std::uint32_t add_call(NodeId id) {
    const Node& node = graph_.node(id);
    if (const Constant* constant = constant_of(node)) {
      return add(id, is_inlined(*constant) ? OpPattern::ElemWise : OpPattern::Opaque);
    }
    const OpPattern pattern = relay_pattern(graph_, id, access_[id]);
    std::vector<std::uint32_t> arguments;
    std::optional<std::uint32_t> tuple;
    std::vector<std::pair<std::uint32_t, OpPattern>> uses;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (!operand) continue;
      const std::uint32_t argument = argument_of(operand);
      if (is_variadic(*node.op, k)) {
        arguments.push_back(argument);
        continue;
      }
      uses.emplace_back(argument, edge_pattern(pattern, operand, node.results.front()));
    }
    if (!arguments.empty()) {
      tuple = add({}, OpPattern::Tuple);
      for (std::uint32_t argument : arguments) use(argument, *tuple, OpPattern::Injective);
    }
    const std::uint32_t call = add(id, pattern);
    for (const auto& [argument, kind] : uses) use(argument, call, kind);
    if (tuple) use(*tuple, call, pattern);
    return call;
  }

  // A literal is repeated at each use: one expression per use.
  std::uint32_t argument_of(ValueId operand) {
    const Constant* constant = graph_.constant_of(operand);
    if (constant && is_inlined(*constant)) return add({}, OpPattern::ElemWise);
    return of_value_[operand];
  }

  const Constant* constant_of(const Node& node) const {
    return node.results.empty() || !node.results[0] ? nullptr : graph_.constant_of(node.results[0]);
  }

  OpPattern edge_pattern(OpPattern pattern, ValueId operand, ValueId result) const {
    if (pattern != OpPattern::Broadcast || !result) return pattern;
    const Type &from = graph_.value(operand).type, &to = graph_.value(result).type;
    const bool is_same =
        from.is_tensor() && to.is_tensor() && from.tensor().dims == to.tensor().dims;
    return is_same ? OpPattern::ElemWise : pattern;
  }

  const Graph& graph_;
  IdMap<NodeId, NodeAccess> access_;
  RelayGraph found_;
  IdMap<NodeId, std::uint32_t> of_node_;
  IdMap<ValueId, std::uint32_t> of_value_;
};

}  // namespace

OpPattern relay_pattern(const Graph& graph, NodeId id, const NodeAccess& access) {
  const Node& node = graph.node(id);
  for (const auto& [name, pattern] : kRegistered) {
    if (node.op->name == name) return pattern;
  }
  switch (access.role) {
    case Role::Opaque:
      return OpPattern::Opaque;
    case Role::Pointwise:
      if (has_access(access, Access::Moved)) return OpPattern::Injective;
      return argument_count(node) == 1 ? OpPattern::ElemWise : OpPattern::Broadcast;
    case Role::Move:
      if (has_access(access, Access::Broadcast)) return OpPattern::Broadcast;
      return has_access(access, Access::Moved) ? OpPattern::Injective : OpPattern::ElemWise;
    case Role::Rows:
      return gives_rows_only(graph, node, access) ? OpPattern::CommReduce
                                                  : OpPattern::OutEWiseFusable;
    case Role::Windows:
    case Role::Contraction:
      break;
  }
  return OpPattern::OutEWiseFusable;
}

RelayGraph relay_graph(const Graph& graph) { return GraphIndexer(graph).index(); }

std::vector<PostDominator> post_dominators(const RelayGraph& graph) {
  std::vector<PostDominator> tree(graph.expressions.size());
  constexpr std::uint32_t kNone = PostDominator::kNone;
  for (std::size_t k = graph.expressions.size(); k-- > 0;) {
    const RelayGraph::Expression& expression = graph.expressions[k];
    if (expression.is_seen_from_outside || expression.consumers.empty()) continue;
    OpPattern worst = expression.consumers.front().pattern;
    std::uint32_t parent = expression.consumers.front().consumer;
    const auto climb = [&](std::uint32_t& at) {
      worst = std::max(worst, tree[at].pattern);
      at = tree[at].parent;
    };
    for (std::size_t use = 1; use < expression.consumers.size(); ++use) {
      std::uint32_t other = expression.consumers[use].consumer;
      while (parent != other && parent != kNone && other != kNone) {
        const std::uint32_t own_depth = tree[parent].depth, other_depth = tree[other].depth;
        if (own_depth >= other_depth) climb(parent);
        if (other_depth >= own_depth) climb(other);
      }
      if (parent != other) parent = kNone;
      worst = std::max(worst, expression.consumers[use].pattern);
      if (parent == kNone) break;
    }
    tree[k] = {parent, parent == kNone ? 1 : tree[parent].depth + 1, worst};
  }
  return tree;
}

}  // namespace tenon::passes::fusing
