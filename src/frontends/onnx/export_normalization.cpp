#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/plain_ops.h"

namespace tenon::frontends::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

/// ONNX has channels on axis 1: moves the op's channel axis of the operand x there, and names a
/// result, which `finish` moves back.
class ChannelsFirst {
 public:
  explicit ChannelsFirst(NodeExport& node) : node_(node), x(node.operand("x")), y(node.result()) {
    const auto rank = static_cast<std::int64_t>(node.operand_type("x").tensor().rank());
    const std::int64_t axis = node.integer("axis");
    channel_ = axis < 0 ? axis + rank : axis;
    if (channel_ == 1) return;
    for (std::int64_t k = 0; k < rank; ++k) {
      if (k != channel_) to_front_.push_back(k);
    }
    to_front_.insert(to_front_.begin() + 1, channel_);
    x = node.emit_value("Transpose", {x}, {{"perm", to_front_}});
    y = node.fresh("channels_first");
  }
  void finish() {
    if (channel_ == 1) return;
    Integers back(to_front_.size());
    for (std::size_t k = 0; k < back.size(); ++k) {
      back[static_cast<std::size_t>(to_front_[k])] = static_cast<std::int64_t>(k);
    }
    node_.emit("Transpose", {y}, {node_.result()}, {{"perm", back}});
  }

 private:
  NodeExport& node_;
  std::int64_t channel_ = 1;
  Integers to_front_;

 public:
  std::string x, y;
};

void export_batch_norm(NodeExport& node) {
  const bool is_training = node.node.op->name == "batch_norm_training";
  node.need_opset(is_training ? 15 : 9);
  ChannelsFirst ends(node);
  std::vector<OnnxAttr> attrs{{"epsilon", node.real("epsilon")}};
  std::vector<std::string> outputs{ends.y};
  if (is_training) {
    attrs.push_back({"momentum", node.real("momentum")});
    attrs.push_back({"training_mode", std::int64_t{1}});
    for (std::size_t k = 1; k < 3; ++k) {
      const std::string name = node.results().size() > k ? node.result(k) : "";
      outputs.push_back(name.empty() ? node.fresh("running") : name);
    }
  }
  node.emit("BatchNormalization",
            {ends.x, node.operand("scale"), node.operand("bias"), node.operand("mean"),
             node.operand("variance")},
            outputs, attrs);
  ends.finish();
}

void export_instance_norm(NodeExport& node) {
  node.need_opset(6);
  ChannelsFirst ends(node);
  node.emit("InstanceNormalization", {ends.x, node.operand("scale"), node.operand("bias")},
            {ends.y}, plain_attrs(node));
  ends.finish();
}

void export_group_norm(NodeExport& node) {
  node.need_opset(21);
  ChannelsFirst ends(node);
  node.emit("GroupNormalization", {ends.x, node.operand("scale"), node.operand("bias")}, {ends.y},
            plain_attrs(node));
  ends.finish();
}

// ONNX offsets queries only by the keys of a cache: exports the first keys as a cache.
void split_cache(NodeExport& node, std::int64_t offset, std::vector<std::string>& inputs) {
  const std::string zero = node.integers_constant({0}), start = node.integers_constant({offset});
  const std::string end = node.integers_constant({kMaxExtent}), axis = node.integers_constant({2});
  for (std::size_t k = 1; k < 3; ++k) {
    inputs[k + 3] = node.emit_value("Slice", {inputs[k], zero, start, axis});
    inputs[k] = node.emit_value("Slice", {inputs[k], start, end, axis});
  }
}

void export_attention(NodeExport& node) {
  const std::int64_t left = node.integer("left_window"), right = node.integer("right_window");
  const bool has_window = left >= 0 || right >= 0;
  node.need_opset(has_window ? 25 : node.has("key_counts") ? 24 : 23);
  std::vector<std::string> inputs{
      node.operand("q"),         node.operand("k"), node.operand("v"), node.operand("mask"), "", "",
      node.operand("key_counts")};
  const bool is_causal = node.flag("causal");
  const bool has_positions = (is_causal || has_window) && !node.has("key_counts");
  if (has_positions && node.integer("causal_offset") != 0) {
    split_cache(node, node.integer("causal_offset"), inputs);
  }
  while (inputs.back().empty()) inputs.pop_back();
  std::vector<OnnxAttr> attrs{{"is_causal", std::int64_t{is_causal}},
                              {"softcap", node.real("softcap")}};
  if (left >= 0) attrs.push_back({"left_window_size", left});
  if (right >= 0) attrs.push_back({"right_window_size", right});
  if (node.has_attr("scale")) attrs.push_back({"scale", node.real("scale")});
  if (node.has_attr("softmax_dtype")) {
    const std::int64_t element = onnx_element_type(node.element("softmax_dtype"));
    attrs.push_back({"softmax_precision", element});
  }
  std::vector<std::string> outputs{node.result()};
  if (node.results().size() > 1 && !node.result(1).empty()) {
    const std::string stage = node.text("scores");
    const std::int64_t mode = stage == "product"  ? 0
                              : stage == "capped" ? 1
                              : stage == "masked" ? 2
                                                  : 3;
    attrs.push_back({"qk_matmul_output_mode", mode});
    outputs = {node.result(), "", "", node.result(1)};
  }
  node.emit("Attention", inputs, outputs, attrs);
}

constexpr ExportRule normalization_exports[] = {
    {"attention", export_attention},
    {"batch_norm", export_batch_norm},
    {"batch_norm_training", export_batch_norm},
    {"group_norm", export_group_norm},
    {"instance_norm", export_instance_norm},
};

}  // namespace

std::span<const ExportRule> normalization_export_rules() { return normalization_exports; }

}  // namespace tenon::frontends::onnx
