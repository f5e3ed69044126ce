#include "frontends/tensorscope/match.h"

#include "base/error.h"
#include "frontends/tensorscope/names.h"
#include "frontends/tensorscope/tf_ops.h"

#include <algorithm>
#include <optional>

namespace tenon::tensorscope {
namespace {

std::optional<Agreement> compare_shapes(const TensorShape& said, const Type& type) {
  if (!type.is_tensor() || !all_constant(type.tensor().dims)) return std::nullopt;
  const TensorShape other{std::string(element_word(type.tensor().dtype)),
                          constants(type.tensor().dims)};
  if (find_element(said.element)->dtype != type.tensor().dtype) return std::nullopt;
  if (said.extents == other.extents) return Agreement::Equal;
  if (said.extents.size() != 4 || other.extents.size() != 4) return std::nullopt;
  std::vector<std::int64_t> a = said.extents, b = other.extents;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b ? std::optional(Agreement::Permuted) : std::nullopt;
}

bool is_same_op(const Graph& graph, ValueId value, std::string_view op) {
  const NodeId producer = graph.value(value).producer;
  const OpInfo* known = find_tf_op(op);
  const bool is_source = known != nullptr && known->op_class == OpClass::Source;
  if (!producer || graph.constant_of(value) != nullptr) return is_source || op == "Identity";
  const std::string own = tf_op_name(graph, producer);
  return own == op || (own == "Add" && (op == "BiasAdd" || op == "AddV2"));
}

}  // namespace

Match match_graph(const Table& table, const DataFlow& step, const Graph& graph) {
  Match match;
  IdMap<ValueId, char> is_matched(graph.value_id_bound(), 0);
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const Row& row = table.rows[at];
    if (row.kind != RowKind::Node && row.kind != RowKind::Feed) continue;
    ValueId value = graph.find(row.node);
    // A graph reads a variable without a node for it.
    if (!value && last_part(row.node) == "read") value = graph.find(scope_of(row.node));
    const auto leave = [&](std::string reason) {
      match.left_rows.push_back({at, std::move(reason)});
    };
    if (row.outputs.empty()) {
      leave("it gives nothing");
    } else if (!value) {
      leave("the graph has no value of that name");
    } else if (!is_same_op(graph, value, step.ops[at])) {
      leave(concat("it is ", step.ops[at], ", in the graph ",
                   tf_op_name(graph, graph.value(value).producer)));
    } else if (const auto agreement = compare_shapes(row.outputs[0], graph.value(value).type)) {
      match.pairs.push_back({at, value, *agreement});
      is_matched[value] = 1;
    } else {
      leave(concat("it gives (", row.outputs[0], "), in the graph ", graph.value(value).type));
    }
  }
  const auto collect = [&](ValueId value) {
    if (value && is_matched[value] == 0) match.left_values.push_back(value);
  };
  for (const ValueId input : graph.inputs()) collect(input);
  for (const NodeId id : graph.nodes_in_order()) {
    for (const ValueId result : graph.node(id).results) collect(result);
  }
  return match;
}

}  // namespace tenon::tensorscope
