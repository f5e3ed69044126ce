#include "documents/tensorscope/step_names.h"

#include "base/error.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"

#include <algorithm>
#include <utility>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::string_view kScope = "gradients/", kEnd = "_grad";

// Operators whose whole gradient is one operator of TensorFlow.
constexpr std::pair<std::string_view, std::string_view> kGradients[] = {
    {"average_pool", "AvgPoolGrad"}, {"elu", "EluGrad"},           {"lrn", "LRNGrad"},
    {"max_pool", "MaxPoolGrad"},     {"relu", "ReluGrad"},         {"sigmoid", "SigmoidGrad"},
    {"softplus", "SoftplusGrad"},    {"softsign", "SoftsignGrad"}, {"tanh", "TanhGrad"},
};

// TensorFlow's operand positions that differ from Tenon's.
struct OperandPosition {
  std::string_view op;
  std::size_t operand, input;
};
constexpr OperandPosition kOperandPositions[] = {
    {"max_pool_gradient", 1, 2}, {"average_pool_gradient", 0, 1}, {"lrn_gradient", 0, 1},
    {"lrn_gradient", 1, 0},      {"conv_weight_gradient", 1, 2},  {"conv_transpose", 0, 2}};

class Namer {
 public:
  explicit Namer(const Graph& graph) : graph_(graph) {}

  std::unordered_map<NodeId, std::string> run() {
    std::unordered_map<std::string, NodeId> by_name;
    for (const NodeId id : graph_.nodes_in_order()) by_name.emplace(name_of(id), id);
    for (const NodeId id : graph_.nodes_in_order()) {
      const std::string name = name_of(id);
      if (!name.starts_with(kScope) || !name.ends_with(kEnd)) continue;
      const auto forward =
          by_name.find(name.substr(kScope.size(), name.size() - kScope.size() - kEnd.size()));
      if (forward != by_name.end()) names_[id] = concat(name, "/", part(forward->second, id));
    }
    for (const NodeId id : graph_.nodes_in_order()) {
      if (graph_.op_name(id) == "transpose" && !layout_transpose(name_of(id))) name_transpose(id);
    }
    return std::move(names_);
  }

 private:
  std::string name_of(NodeId id) const {
    if (const auto found = names_.find(id); found != names_.end()) return found->second;
    const Node& node = graph_.node(id);
    if (!node.name.empty() || node.results.empty() || !node.results[0]) return node.name;
    return graph_.value(node.results[0]).name;
  }

  std::string part(NodeId forward, NodeId id) const {
    for (const auto& [op, gradient] : kGradients) {
      if (graph_.op_name(forward) == op) return std::string(gradient);
    }
    const bool sums_bias = graph_.op_name(forward) == "add" && graph_.op_name(id) == "reduce_sum";
    return sums_bias ? "BiasAddGrad" : tf_op_name(graph_, id);
  }

  // Returns the input position of a value in a node's row.
  std::size_t input_of(NodeId reader, ValueId value) const {
    const Node& node = graph_.node(reader);
    const auto operand = static_cast<std::size_t>(
        std::find(node.operands.begin(), node.operands.end(), value) - node.operands.begin());
    // ReluGrad reads the gradient, then the forward result, which is compared.
    if (name_of(reader).ends_with("/ReluGrad")) return node.op->name == "greater" ? 1 : 0;
    for (const OperandPosition& place : kOperandPositions) {
      if (place.op == node.op->name && place.operand == operand) return place.input;
    }
    return operand;
  }

  const Layout& layout_of(ValueId value) const { return graph_.value(value).type.tensor().layout; }

  // Among equal transposes the optimisers keep that of the first reader by name.
  void name_transpose(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId from = node.operands[0], to = node.results[0];
    const bool to_nchw = layout_of(from).text() == "NHWC" && layout_of(to).text() == "NCHW";
    const bool to_nhwc = layout_of(from).text() == "NCHW" && layout_of(to).text() == "NHWC";
    const std::vector<NodeId>& readers = graph_.readers(to);
    const NodeId source = graph_.value(from).producer;
    if ((!to_nchw && !to_nhwc) || readers.empty() || (to_nhwc && !source)) return;
    const NodeId reader = *std::ranges::min_element(
        readers, {}, [&](NodeId each) { return std::pair(name_of(each), input_of(each, to)); });
    const std::size_t input = input_of(reader, to);
    const std::vector<NodeId>& consumers = graph_.readers(from);
    const auto ordinal = std::find(consumers.begin(), consumers.end(), id) - consumers.begin();
    names_[id] = to_nchw
                     ? concat(name_of(reader), "-", input, "-TransposeNHWCToNCHW-LayoutOptimizer")
                     : concat(name_of(source), "-", ordinal, "-", input,
                              "-TransposeNCHWToNHWC-LayoutOptimizer");
  }

  const Graph& graph_;
  std::unordered_map<NodeId, std::string> names_;
};

}  // namespace

std::unordered_map<NodeId, std::string> step_names(const Graph& graph) {
  return Namer(graph).run();
}

}  // namespace tenon::documents::tensorscope
