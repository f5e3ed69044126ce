#include "base/error.h"
#include "ops/definition/registry.h"
#include "passes/dynamic_attributes.h"
#include "passes/train/step_builder.h"

#include <map>

namespace tenon::passes::training {
namespace {

using Perm = std::vector<std::int64_t>;

// Chooses layouts for the weights of convolutions that are not constants; constants would be packed
// at compile time.
class WeightLayouts {
 public:
  explicit WeightLayouts(Graph& graph) : graph_(graph) {}

  void run() {
    for (NodeId id : graph_.nodes_in_order()) {
      const std::string_view op = graph_.op_name(id);
      if (op == "conv") {  // op-name: the op whose weights these are
        lay_operand(id, {2, 3, 1, 0}, "HWIO");
      } else if (op == "conv_transpose") {  // op-name: likewise; it sums over O and writes along I
        lay_operand(id, {2, 3, 0, 1}, "HWOI");
      } else if (op == "conv_weight_gradient") {  // op-name: likewise
        lay_result(id);
      }
    }
  }

 private:
  static bool is_in_order(const Type& type) {
    if (!type.is_tensor() || type.tensor().rank() != 4) return false;
    const Layout& layout = type.tensor().layout;
    return layout.is_empty() || layout.text() == "OIHW";
  }

  // Kernels vectorize over the channels of one group only, which may be a single one.
  static bool has_groups(const Node& node) {
    const AttrValue* groups = node.attrs.find("groups");
    return groups && !(std::get<Dim>(*groups) == Dim(1));
  }

  ValueId transposed(ValueId value, const Perm& perm, const std::string& layout, NodeId before) {
    ValueId& made = made_[{value, layout}];
    if (made) return made;
    Graph::NewNode node{&find_op("transpose"), {value}, {}, {}, {""}, ""};
    node.attrs.set("perm", Dims(perm.begin(), perm.end()));
    made = graph_.node(graph_.add_node(std::move(node), before)).results.front();
    TensorType type = graph_.value(made).type.tensor();
    type.layout = Layout(layout);
    graph_.set_type(made, type);
    return made;
  }

  void lay_operand(NodeId id, const Perm& perm, const std::string& layout) {
    const Node& node = graph_.node(id);
    const std::size_t position = *node.op->operand_index("w");
    const ValueId weights = node.operands[position];
    if (graph_.constant_of(weights) || !is_in_order(graph_.value(weights).type) || has_groups(node))
      return;
    graph_.set_operand(id, position, transposed(weights, perm, layout, id));
    graph_.infer(id);
  }

  void lay_result(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId result = node.results.front();
    if (!is_in_order(graph_.value(result).type) || has_groups(node)) return;
    graph_.set_attribute(id, "out_layout", std::string("HWIO"));
    graph_.infer(id);
    Graph::NewNode back{&find_op("transpose"), {result}, {}, {}, {""}, ""};
    back.attrs.set("perm", Dims{3, 2, 0, 1});
    const ValueId made =
        graph_.node(graph_.add_node(std::move(back), graph_.next(id))).results.front();
    graph_.replace_uses(result, made);
    Reinference types(graph_);
    types.mark_readers(made);  // they infer types from the new order of axes
    types.refresh_from(id);
  }

  Graph& graph_;
  std::map<std::pair<ValueId, std::string>, ValueId> made_;
};

}  // namespace

void lay_out_weights(Graph& graph) { WeightLayouts(graph).run(); }

}  // namespace tenon::passes::training
