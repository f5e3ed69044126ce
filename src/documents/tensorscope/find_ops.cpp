#include "documents/tensorscope/wiring.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::tensorscope {
namespace {

// Returns the operator with this gradient operator.
std::string_view forward_operator(std::string_view gradient_op) {
  constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {"AvgPoolGrad", "AvgPool"},
      {"BiasAddGrad", "BiasAdd"},
      {"Conv2DBackpropFilter", "Conv2D"},
      {"Conv2DBackpropInput", "Conv2D"},
      {"EluGrad", "Elu"},
      {"LRNGrad", "LRN"},
      {"MaxPoolGrad", "MaxPool"},
      {"Relu6Grad", "Relu6"},
      {"ReluGrad", "Relu"},
      {"RsqrtGrad", "Rsqrt"},
      {"SigmoidGrad", "Sigmoid"},
      {"SqrtGrad", "Sqrt"},
      {"TanhGrad", "Tanh"}};
  for (const auto& [gradient, forward] : pairs) {
    if (gradient == gradient_op) return forward;
  }
  return {};
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

// Guesses an unknown operator from the node's name and shapes.
std::string_view usual_op(const Row& row, bool ends_layer) {
  if (row.outputs.size() != 1) return {};
  if (row.inputs.size() == 2 && row.inputs[1].element == "int32") {
    const bool is_shape =
        row.inputs[1].extents.size() == 1 &&
        row.inputs[1].extents[0] == static_cast<std::int64_t>(row.outputs[0].extents.size());
    const bool keeps = row.inputs[0].element_count() == row.outputs[0].element_count();
    if (is_shape && keeps) return "Reshape";
    return row.inputs[1].extents.empty() && keeps ? "ExpandDims" : std::string_view();
  }
  if (row.inputs.size() != 1) return {};
  const auto ones_dropped = [](const TensorShape& shape) {
    std::vector<std::int64_t> extents = shape.extents;
    std::erase(extents, 1);
    return extents;
  };
  if (row.inputs[0].extents.size() > row.outputs[0].extents.size() &&
      ones_dropped(row.inputs[0]) == ones_dropped(row.outputs[0])) {
    return "Squeeze";
  }
  const std::string word = lower_case(last_part(row.node));
  if (row.inputs[0].extents.size() == 4 && word.find("pool") != std::string::npos) {
    return word.find("av") != std::string::npos ? "AvgPool" : "MaxPool";
  }
  if (!(row.inputs[0] == row.outputs[0])) return {};
  return ends_layer || word.find("relu") != std::string::npos ? "Relu" : std::string_view();
}

}  // namespace

void find_ops(const TensorScopeTable& table, DataFlow& step) {
  step.ops.assign(table.rows.size(), "");
  step.is_op_assumed.assign(table.rows.size(), false);
  std::unordered_set<std::string_view> layers;  // scopes of contractions
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const Row& row = table.rows[k];
    if (row.kind == RowKind::Feed) step.ops[k] = "Placeholder";
    if (row.kind != RowKind::Node) continue;
    if (const std::string_view note = table.note(row.node); !note.empty()) {
      step.ops[k] = is_own(note) ? kOwnOp : "Const";
      continue;
    }
    const std::string_view stream = table.stream_op(row.node);
    step.ops[k] = stream.empty() ? op_in_name(row.node) : stream;
    if (step.ops[k].empty() && row.inputs.empty()) {
      const bool is_variable = table.find_node(row.node + "/read") >= 0;
      step.ops[k] = is_variable ? "VariableV2" : row.outputs.empty() ? "NoOp" : "Const";
    }
    const OpInfo* known = find_tf_op(step.ops[k]);
    if (known != nullptr && known->op_class == OpClass::Contraction)
      layers.insert(scope_of(row.node));
  }
  for (const Row& row : table.rows) {
    if (row.kind != RowKind::Node) continue;
    const auto gradient = gradient_name(row.node);
    if (!gradient) continue;
    const std::int64_t forward = table.find_node(gradient->forward);
    if (forward < 0) continue;
    std::string& op = step.ops[static_cast<std::size_t>(forward)];
    if (op.empty()) op = forward_operator(numbered(gradient->part).stem);
  }
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const Row& row = table.rows[k];
    if (row.kind != RowKind::Node || !step.ops[k].empty()) continue;
    step.ops[k] = usual_op(row, layers.contains(row.node));
    step.is_op_assumed[k] = !step.ops[k].empty();
  }
}

}  // namespace tenon::documents::tensorscope
