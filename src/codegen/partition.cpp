#include "codegen/partition.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "codegen/compile.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "ops/fused_groups.h"

namespace tenon::codegen {
namespace {

void collect(const Dim& dim, std::set<std::string>& symbols) {
  SymbolRanges found;
  dim.collect_symbols(found);
  for (const auto& [name, range] : found) symbols.insert(name);
}

// An element type that is computed with somewhere in the expressions and that kernels do not know.
std::optional<DType> foreign_dtype(const std::vector<Expr>& exprs) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<const ExprNode*> work;
  for (const Expr& expr : exprs) work.push_back(&expr.node());
  while (!work.empty()) {
    const ExprNode* node = work.back();
    work.pop_back();
    if (!seen.insert(node).second) continue;
    if (!nests::is_compilable(node->dtype)) return node->dtype;
    for (const Expr& arg : node->args) {
      if (arg.is_defined()) work.push_back(&arg.node());
    }
  }
  return std::nullopt;
}

bool is_constant(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return node.results.size() == 1 && graph.constant_of(node.results.front()) != nullptr;
}

// Whether the extents of the results follow from extents that earlier values have.
bool has_known_extents(const Graph& graph, NodeId id, const std::set<std::string>& told) {
  std::set<std::string> symbols;
  collect_symbols(graph, id, symbols);
  return std::includes(told.begin(), told.end(), symbols.begin(), symbols.end());
}

Work work_of(const Graph& graph, NodeId id, const std::set<std::string>& told) {
  if (!graph.node(id).bodies.empty() && !is_fused_group(graph, id)) return Work::Control;
  const bool has_kernel = kernel_refusal(graph, id).empty() && has_known_extents(graph, id, told);
  return has_kernel ? Work::Kernels : Work::Operators;
}

}  // namespace

void collect_symbols(const Type& type, std::set<std::string>& symbols) {
  if (type.is_tensor()) {
    for (const Dim& dim : type.tensor().dims) collect(dim, symbols);
  } else if (type.is_known()) {
    collect_symbols(type.element(), symbols);
  }
}

void collect_told_symbols(const Type& type, std::set<std::string>& symbols) {
  if (!type.is_tensor()) return;
  for (const Dim& dim : type.tensor().dims) {
    if (const auto name = dim.symbol_name()) symbols.insert(*name);
  }
}

void collect_symbols(const Graph& graph, NodeId id, std::set<std::string>& symbols) {
  const Node& node = graph.node(id);
  for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
    for (ValueId value : *values) {
      if (value) collect_symbols(graph.value(value).type, symbols);
    }
  }
  for (const auto& [name, value] : node.attrs) {
    if (const auto* dim = std::get_if<Dim>(&value)) collect(*dim, symbols);
    if (const auto* dims = std::get_if<Dims>(&value)) {
      for (const Dim& dim : *dims) collect(dim, symbols);
    }
  }
  if (!is_fused_group(graph, id)) return;
  for (NodeId inner : node.bodies.front().nodes_in_order()) collect_symbols(node.bodies.front(), inner, symbols);
}

std::string kernel_refusal(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
    for (ValueId value : *values) {
      if (!value) continue;
      const Type& type = graph.value(value).type;
      if (!type.is_tensor()) return concat("'", graph.value(value).name, "' is no tensor of known rank");
      if (!nests::is_compilable(type.tensor().dtype)) return concat("element type ", type.tensor().dtype);
    }
  }
  if (is_constant(graph, id)) return "";
  const std::vector<Expr> exprs = nests::node_exprs(graph, id);
  if (exprs.empty()) {
    return node.op->lower || is_fused_group(graph, id) ? "an attribute follows from data"
                                                       : "no expression describes it";
  }
  const std::optional<DType> foreign = foreign_dtype(exprs);
  return foreign ? concat("it computes with ", *foreign) : "";
}

// A group is a level and a kind of work: nodes go into the first level that follows all they read, so
// that kernels stay together wherever nothing else must run between them.
Partition::Partition(const Graph& graph) : group_of(graph.node_id_bound(), 0) {
  std::set<std::string> told;
  for (ValueId input : graph.inputs()) collect_told_symbols(graph.value(input).type, told);
  // By level, kind and, for control flow, node.
  std::map<std::tuple<std::uint32_t, Work, std::uint32_t>, Group> found;
  IdMap<NodeId, std::uint32_t> level_of(graph.node_id_bound(), 0);
  IdMap<NodeId, Work> works(graph.node_id_bound(), Work::Kernels);
  std::uint32_t control_count = 0;
  for (NodeId id : graph.nodes_in_order()) {
    if (is_constant(graph, id)) continue;
    const Node& node = graph.node(id);
    const Work work = work_of(graph, id, told);
    std::uint32_t level = 0;
    for (ValueId operand : node.operands) {
      const NodeId producer = operand ? graph.value(operand).producer : NodeId{};
      if (!producer || is_constant(graph, producer)) continue;
      // Kinds follow each other within a level; control flow shares no group.
      const bool fits = works[producer] < work || (works[producer] == work && work != Work::Control);
      level = std::max(level, level_of[producer] + (fits ? 0 : 1));
    }
    works[id] = work;
    level_of[id] = level;
    Group& group = found[{level, work, work == Work::Control ? ++control_count : 0}];
    group.work = work;
    group.nodes.push_back(id);
    for (ValueId result : node.results) {
      if (result) collect_told_symbols(graph.value(result).type, told);
    }
  }
  for (auto& [place, group] : found) {
    for (NodeId id : group.nodes) group_of[id] = static_cast<std::uint32_t>(groups.size());
    groups.push_back(std::move(group));
  }
}

}  // namespace tenon::codegen
