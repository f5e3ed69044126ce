#include "passes/grouping.h"

#include "base/error.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tenon::passes {
namespace {

void collect_symbols(const Attributes& attrs, SymbolRanges& symbols) {
  for (const auto& [name, value] : attrs) {
    if (const Dim* dim = std::get_if<Dim>(&value)) dim->collect_symbols(symbols);
    if (const Dims* dims = std::get_if<Dims>(&value)) {
      for (const Dim& dim : *dims) dim.collect_symbols(symbols);
    }
  }
}

void erase_bound(const Graph& graph, SymbolRanges& symbols) {
  for (ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (symbols.empty() || !type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) {
      if (const auto name = dim.symbol_name()) symbols.erase(*name);
    }
  }
}

// A symbol in an attribute is known at run time only through an extent of an operand, or of an
// input of the surrounding graph, that is exactly that symbol.
bool knows_its_symbols(const Graph& body, const Graph& around) {
  SymbolRanges asked;
  for (NodeId id : body.nodes_in_order()) collect_symbols(body.node(id).attrs, asked);
  erase_bound(body, asked);
  erase_bound(around, asked);
  return asked.empty();
}

/// Rebuilds a graph group by group.
class GroupWriter {
 public:
  GroupWriter(Graph graph, const Grouping& grouping, Remarks* remarks)
      : old_(std::move(graph)),
        grouping_(grouping),
        remarks_(remarks),
        group_of_(old_.node_id_bound(), kNone),
        positions_(old_.node_id_bound(), 0),
        is_seen_outside_(old_.value_id_bound(), 0),
        new_ids_(old_.value_id_bound()) {
    std::uint32_t position = 0;
    for (NodeId id : old_.nodes_in_order()) positions_[id] = position++;
    for (std::size_t k = 0; k < grouping.groups.size(); ++k) {
      for (NodeId id : grouping.groups[k].nodes) group_of_[id] = static_cast<std::uint32_t>(k);
    }
    for (std::size_t k = 0; k < grouping.groups.size(); ++k) {
      const Grouping::Group& group = grouping.groups[k];
      for (NodeId id : group.nodes) mark_foreign(old_.node(id), k);
      // Operands of a duplicated node come from outside, even if the original node is in the group.
      for (NodeId id : group.copies) mark_foreign(old_.node(id), k);
    }
  }

  Graph write() {
    new_.name = std::move(old_.name);
    new_.metadata = std::move(old_.metadata);
    new_.states = std::move(old_.states);
    for (ValueId input : old_.inputs()) {
      new_ids_[input] = new_.add_input(old_.value(input).name, old_.value(input).type);
    }
    for (const Grouping::Group& group : grouping_.groups) {
      const bool is_single = group.nodes.size() == 1 && group.copies.empty();
      if (is_single || !write_group(group)) write_apart(group);
    }
    for (ValueId output : old_.outputs()) new_.add_output(new_ids_[output]);
    new_.erase_dead();
    return std::move(new_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void mark_foreign(const Node& node, std::size_t group) {
    for (ValueId operand : node.operands) {
      if (!operand) continue;
      const NodeId producer = old_.value(operand).producer;
      if (producer && group_of_[producer] != group) is_seen_outside_[operand] = 1;
    }
  }

  // A body knows its operands' types but not their elements, so constants that define attributes
  // move into it, as do scalars.
  bool moves_into_body(const Node& reader, std::size_t position, const Constant& constant) const {
    const std::vector<OperandDef>& defs = reader.op->operands;
    if (position < defs.size() && defs[position].is_dynamic_attribute) return true;
    return constant.size() == 1;
  }

  NodeId add_copy(Graph& to, const Node& node, const std::vector<ValueId>& operands) {
    Graph::NewNode copy{node.op, operands, node.attrs, node.bodies, {}, node.name};
    for (ValueId result : node.results) {
      copy.results.push_back(result ? old_.value(result).name : "_");
    }
    return to.add_node(std::move(copy));
  }

  void write_node(NodeId id) {
    const Node& node = old_.node(id);
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) {
      operands.push_back(operand ? new_ids_[operand] : ValueId{});
    }
    const NodeId made = add_copy(new_, node, operands);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const ValueId result = node.results[k];
      if (!result) continue;
      new_ids_[result] = new_.node(made).results[k];
      if (old_.has_stated_type(result)) new_.set_type(new_ids_[result], old_.value(result).type);
    }
  }

  // A value that another group duplicates is still materialized if other nodes read it.
  void write_apart(const Grouping::Group& group) {
    std::vector<NodeId> nodes = group.nodes;
    for (NodeId copy : group.copies) {
      if (!new_ids_[first_result(copy)]) nodes.push_back(copy);
    }
    std::ranges::sort(nodes, {}, [&](NodeId id) { return positions_[id]; });
    for (NodeId id : nodes) write_node(id);
  }

  ValueId first_result(NodeId id) const {
    for (ValueId result : old_.node(id).results) {
      if (result) return result;
    }
    return {};
  }

  struct Body {
    Graph graph;
    std::vector<ValueId> operands, outputs;  // of the group, by their old ids
    std::unordered_map<ValueId, ValueId> inner;
  };

  ValueId inner_operand(Body& body, const Node& reader, std::size_t position) {
    const ValueId operand = reader.operands[position];
    if (!operand) return {};
    if (const auto found = body.inner.find(operand); found != body.inner.end())
      return found->second;
    const Value& value = old_.value(operand);
    const Constant* constant = old_.constant_of(operand);
    ValueId made;
    if (constant && moves_into_body(reader, position, *constant)) {
      made = body.graph.add_constant(find_op("constant"), *constant, value.name);
    } else {
      made = body.graph.add_input(value.name, value.type);
      body.operands.push_back(operand);
    }
    return body.inner[operand] = made;
  }

  bool is_read_elsewhere(ValueId value) const {
    return old_.is_output(value) || is_seen_outside_[value] != 0;
  }

  std::optional<Body> make_body(const Grouping::Group& group) {
    Body body;
    std::vector<NodeId> nodes = group.nodes;
    nodes.insert(nodes.end(), group.copies.begin(), group.copies.end());
    std::ranges::sort(nodes, {}, [&](NodeId id) { return positions_[id]; });
    const auto own = static_cast<std::uint32_t>(&group - grouping_.groups.data());
    for (NodeId id : nodes) {
      const Node& node = old_.node(id);
      std::vector<ValueId> operands;
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        operands.push_back(inner_operand(body, node, k));
      }
      const NodeId made = add_copy(body.graph, node, operands);
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        const ValueId result = node.results[k];
        if (!result) continue;
        const ValueId inner = body.graph.node(made).results[k];
        if (old_.has_stated_type(result)) body.graph.set_type(inner, old_.value(result).type);
        if (!(body.graph.value(inner).type == old_.value(result).type)) return std::nullopt;
        body.inner[result] = inner;
        if (group_of_[id] != own || !is_read_elsewhere(result)) continue;
        body.outputs.push_back(result);
        body.graph.add_output(inner);
      }
    }
    if (!knows_its_symbols(body.graph, old_)) return std::nullopt;
    return body;
  }

  bool write_group(const Grouping::Group& group) {
    std::optional<Body> body = make_body(group);
    if (!body) {
      if (remarks_) {
        remarks_->say(old_.value(first_result(group.nodes.front())).name, "fuse",
                      "not grouped: its types or symbols cannot be expressed inside a group");
      }
      return false;
    }
    if (body->outputs.empty()) return true;  // no value of the group is read
    Graph::NewNode fused;
    fused.op = &find_op("fused");
    for (ValueId operand : body->operands) fused.operands.push_back(new_ids_[operand]);
    for (ValueId output : body->outputs) fused.results.push_back(old_.value(output).name);
    fused.bodies.push_back(std::move(body->graph));
    const NodeId made = new_.add_node(std::move(fused));
    for (std::size_t k = 0; k < body->outputs.size(); ++k) {
      new_ids_[body->outputs[k]] = new_.node(made).results[k];
    }
    return true;
  }

  Graph old_, new_;
  const Grouping& grouping_;
  Remarks* remarks_;
  IdMap<NodeId, std::uint32_t> group_of_, positions_;
  IdMap<ValueId, std::uint8_t> is_seen_outside_;
  IdMap<ValueId, ValueId> new_ids_;
};

}  // namespace

Graph with_groups(Graph graph, const Grouping& grouping, Remarks* remarks) {
  return GroupWriter(std::move(graph), grouping, remarks).write();
}

}  // namespace tenon::passes
