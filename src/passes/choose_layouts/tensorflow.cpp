// Layout optimizer of TensorFlow 1.9: converts the nodes of a fixed list to channels first,
// followed by layout-agnostic nodes after them; inputs and outputs of the graph stay as they are.
// Duplicate and cancelling transposes never arise, because each value gets one transpose per
// direction.
#include "passes/choose_layouts/assignment.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tenon::passes::layouts {
namespace {

constexpr std::array<std::string_view, 9> kSupported = {
    "average_pool",   "average_pool_gradient", "batch_norm", "batch_norm_training", "conv",
    "conv_transpose", "conv_weight_gradient",  "max_pool",   "max_pool_gradient"};

class TensorFlowRule {
 public:
  explicit TensorFlowRule(const LayoutProblem& problem)
      : problem_(problem), graph_(problem.graph) {}

  LayoutAssignment choose() {
    LayoutAssignment choice;
    for (NodeId id : graph_.nodes_in_order()) {
      if (!problem_.roles[id].can_move() || is_fetched(id) || rank_of(id) != 4) continue;
      if (!is_supported(id) && !(is_agnostic(id) && follows_moved(id, choice))) continue;
      choice.moves[id] = 1;
      choice.is_empty = false;
    }
    return choice;
  }

 private:
  const TensorType* type(ValueId value) const {
    if (!value || !graph_.value(value).type.is_tensor()) return nullptr;
    return &graph_.value(value).type.tensor();
  }

  std::size_t rank_of(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::vector<ImageRole>& roles = problem_.roles[id].operands;
    for (std::size_t k = 0; k < roles.size(); ++k) {
      if (roles[k] == ImageRole::Image) return type(node.operands[k])->rank();
    }
    return 0;
  }

  bool is_fetched(NodeId id) const {
    return std::ranges::any_of(graph_.node(id).results,
                               [&](ValueId value) { return value && graph_.is_output(value); });
  }

  bool is_supported(NodeId id) const {
    const std::string& op = graph_.node(id).op->name;
    if (op == "add") return adds_bias(id);
    if (op == "reduce_sum") return sums_to_channels(id);
    return std::ranges::find(kSupported, op) != kSupported.end() && !runs_as_matmul(id);
  }

  // BiasAdd is a separate op in TensorFlow.
  bool adds_bias(NodeId id) const {
    const Node& node = graph_.node(id);
    return std::ranges::any_of(node.operands, [&](ValueId value) {
      return value && type(value) && type(value)->rank() == 1;
    });
  }

  bool sums_to_channels(NodeId id) const {
    const TensorType* sums = type(graph_.node(id).results[0]);
    return sums && sums->rank() == 1;
  }

  // TensorFlow runs 1x1 convolutions with stride one, and those whose kernel covers the whole
  // image, as matrix products.
  bool runs_as_matmul(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op->name != "conv") return false;
    const TensorType &x = *type(node.operands[0]), &w = *type(node.operands[1]);
    const auto extent = [](const TensorType& of, char letter, std::size_t otherwise) {
      return of.dims[of.layout.axis(letter).value_or(otherwise)];
    };
    const Dim kernel_h = extent(w, 'H', 2), kernel_w = extent(w, 'W', 3);
    const auto all = [&](std::string_view attr, const Dim& wanted) {
      const AttrValue* given = node.attrs.find(attr);
      return !given || std::ranges::all_of(std::get<Dims>(*given),
                                           [&](const Dim& dim) { return dim == wanted; });
    };
    if (kernel_h == Dim(1) && kernel_w == Dim(1)) return all("strides", 1);
    return kernel_h == extent(x, 'H', 2) && kernel_w == extent(x, 'W', 3) && all("pads", 0);
  }

  // Elementwise ops and joins along an axis. LRN is on neither of TensorFlow's lists.
  bool is_agnostic(NodeId id) const {
    const LayoutRule::Kind kind = graph_.node(id).op->layout.kind;
    return kind == LayoutRule::Kind::Derived || graph_.node(id).op->name == "concat" ||
           graph_.node(id).op->name == "split";
  }

  bool follows_moved(NodeId id, const LayoutAssignment& choice) const {
    return std::ranges::any_of(graph_.node(id).operands, [&](ValueId value) {
      return value && graph_.value(value).producer &&
             choice.moves[graph_.value(value).producer] != 0;
    });
  }

  const LayoutProblem& problem_;
  const Graph& graph_;
};

}  // namespace

LayoutAssignment tensorflow(const LayoutProblem& problem) {
  return TensorFlowRule(problem).choose();
}

}  // namespace tenon::passes::layouts
