#include "expr/node_label.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"

#include <vector>

namespace tenon::inline expr {
namespace {

constexpr std::size_t kMembers = 4, kSources = 2;

// Returns the members of a group except constants.
std::vector<NodeId> members_of(const Graph& body) {
  std::vector<NodeId> members;
  for (const NodeId member : body.nodes_in_order()) {
    const std::vector<ValueId>& results = body.node(member).results;
    if (results.empty() || !results.front() || body.constant_of(results.front()) == nullptr)
      members.push_back(member);
  }
  return members;
}

// Returns the source model's name of the node, or else the name of its result.
std::string own_name(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.name.empty()) return node.name;
  for (const ValueId result : node.results) {
    if (result) return graph.value(result).name;
  }
  return "";
}

// Joins the first names and appends the number of omitted ones.
std::string joined(std::vector<std::string> names, std::size_t most, std::string_view between) {
  const std::size_t left_out = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - left_out);
  return join(names, between) + (left_out > 0 ? concat("+", left_out) : "");
}

}  // namespace

std::string op_label(const Graph& graph, NodeId node) {
  if (!is_fused_group(graph, node)) return std::string(graph.op_name(node));
  const Graph& body = graph.node(node).bodies.front();
  std::vector<std::string> names;
  for (const NodeId member : members_of(body)) names.emplace_back(body.op_name(member));
  return joined(std::move(names), kMembers, "+");
}

std::string source_label(const Graph& graph, NodeId node) {
  if (!is_fused_group(graph, node)) return own_name(graph, node);
  const Graph& body = graph.node(node).bodies.front();
  std::vector<std::string> products;
  NodeId first, first_computing;
  for (const NodeId member : members_of(body)) {
    const Fusion kind = fusion_kind(body, member);
    if (kind == Fusion::Contraction) products.push_back(own_name(body, member));
    if (!first) first = member;
    if (!first_computing && kind != Fusion::Reshuffle) first_computing = member;
  }
  if (!products.empty()) return joined(std::move(products), kSources, ", ");
  const NodeId source = first_computing ? first_computing : first;
  return source ? own_name(body, source) : own_name(graph, node);
}

std::string node_label(const Graph& graph, NodeId node) {
  return concat(op_label(graph, node), " ", source_label(graph, node));
}

}  // namespace tenon::inline expr
