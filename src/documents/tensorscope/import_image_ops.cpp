#include "base/error.h"
#include "documents/tensorscope/import_node.h"
#include "ir/graph.h"

#include <utility>

namespace tenon::documents::tensorscope {
namespace {

using Integers = Attr::Integers;

std::string layout_of(const ImportNode& node) {
  return std::string(
      layout_text(node.layout == ImageLayout::Unknown ? ImageLayout::ChannelsLast : node.layout));
}

std::int64_t channel_axis(const ImportNode& node) {
  return node.layout == ImageLayout::ChannelsFirst ? 1 : 3;
}

Var image(ImportNode& node, std::size_t operand) {
  return with_layout(node.build, node.operands.at(operand), layout_of(node));
}

const Windows& windows_of(const ImportNode& node) {
  if (node.windows == nullptr) refuse(node, "no stride gives a result of this size");
  return *node.windows;
}

std::vector<Attr> window_attrs(const ImportNode& node) {
  const Windows& windows = windows_of(node);
  std::vector<Attr> attrs;
  if (windows.strides != Integers(2, 1)) attrs.emplace_back("strides", windows.strides);
  if (windows.pads != Integers(4, 0)) attrs.emplace_back("pads", windows.pads);
  return attrs;
}

std::vector<Attr> pool_attrs(const ImportNode& node) {
  std::vector<Attr> attrs = window_attrs(node);
  attrs.emplace_back("kernel_shape", windows_of(node).kernel);
  return attrs;
}

std::vector<Var> conv(ImportNode& node) {
  const Var filter = with_layout(node.build, node.operands.at(1), "HWIO");
  return {node.last("conv", {image(node, 0), filter}, window_attrs(node))};
}

// Depthwise filters hold the multiplier per image channel: groups of one channel.
std::vector<Var> depthwise_conv(ImportNode& node) {
  std::vector<Attr> attrs = window_attrs(node);
  const auto& extents = node.row().inputs.at(1).extents;
  const Integers shape{extents.at(0), extents.at(1), 1, extents.at(2) * extents.at(3)};
  const Var flat =
      with_layout(node.build, node.call("reshape", {node.operands[1]}, {{"shape", shape}}), "HWIO");
  attrs.emplace_back("groups", extents[2]);
  return {node.last("conv", {image(node, 0), flat}, attrs)};
}

std::vector<Var> conv_input_gradient(ImportNode& node) {
  const Windows& windows = windows_of(node);
  std::vector<Attr> attrs{{"pads", windows.pads},
                          {"output_shape", spatial_extents(node.output(), node.layout)}};
  if (windows.strides != Integers(2, 1)) attrs.emplace_back("strides", windows.strides);
  const Var filter = with_layout(node.build, node.operands.at(1), "HWIO");
  return {node.last("conv_transpose", {image(node, 2), filter}, attrs)};
}

std::vector<Var> conv_filter_gradient(ImportNode& node) {
  std::vector<Attr> attrs = pool_attrs(node);
  attrs.emplace_back("out_layout", "HWIO");
  return {node.last("conv_weight_gradient", {image(node, 0), image(node, 2)}, attrs)};
}

std::vector<Var> add_bias(ImportNode& node) {
  Var bias = node.operands.at(1);
  if (node.row().inputs[0].extents.size() == 4 && node.layout == ImageLayout::ChannelsFirst) {
    bias = node.call("reshape", {bias}, {{"shape", Integers{-1, 1, 1}}});
  }
  return {node.last("add", {node.operands[0], bias})};
}

std::vector<Var> bias_gradient(ImportNode& node) {
  const std::size_t rank = node.row().inputs.at(0).extents.size();
  const std::int64_t kept = rank == 4 ? channel_axis(node) : static_cast<std::int64_t>(rank) - 1;
  Integers axes;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis) {
    if (axis != kept) axes.push_back(axis);
  }
  return {node.last("reduce_sum", {node.operands.at(0)}, {{"axes", axes}, {"keep_axes", false}})};
}

std::vector<Var> max_pool(ImportNode& node) {
  return {node.last("max_pool", {image(node, 0)}, pool_attrs(node))};
}

std::vector<Var> average_pool(ImportNode& node) {
  return {node.last("average_pool", {image(node, 0)}, pool_attrs(node))};
}

std::vector<Var> max_pool_gradient(ImportNode& node) {
  return {node.last("max_pool_gradient", {image(node, 0), image(node, 2)}, pool_attrs(node))};
}

std::vector<Var> average_pool_gradient(ImportNode& node) {
  std::vector<Attr> attrs = pool_attrs(node);
  attrs.emplace_back("input_shape", spatial_extents(node.output(), node.layout));
  return {node.last("average_pool_gradient", {image(node, 1)}, attrs)};
}

// The table omits these parameters: uses AlexNet's, TensorFlow's depth_radius = 2, bias = 2, alpha
// = 1e-4, beta = 0.75.
std::vector<Attr> response_attrs() {
  return {{"size", 5}, {"alpha", 5e-4}, {"beta", 0.75}, {"bias", 2.0}};
}

std::vector<Var> lrn(ImportNode& node) {
  return {node.last("lrn", {image(node, 0)}, response_attrs())};
}

std::vector<Var> lrn_gradient(ImportNode& node) {
  return {node.last("lrn_gradient", {image(node, 1), image(node, 0)}, response_attrs())};
}

// With mean and variance of training as the last two operands.
std::vector<Var> batch_norm(ImportNode& node) {
  const std::vector<Var>& in = node.operands;
  const bool is_image = node.row().inputs.at(0).extents.size() == 4;
  for (std::size_t k = 1; k < 5; ++k) {
    if (node.row().inputs.at(k) != node.row().inputs[1])
      refuse(node, "it normalizes by what it measures itself");
  }
  std::vector<Attr> attrs;
  if (is_image) attrs.emplace_back("axis", channel_axis(node));
  std::vector<Var> results{node.last("batch_norm", {in[0], in[1], in[2], in[3], in[4]}, attrs)};
  for (std::size_t k = 1; k < node.row().outputs.size(); ++k) {
    results.push_back(node.call("identity", {in[k % 2 == 1 ? 3 : 4]}));
  }
  return results;
}

}  // namespace

Var with_layout(Builder& build, Var value, std::string_view layout) {
  const Type& type = build.type(value);
  if (layout.empty() || !type.is_tensor() || type.tensor().rank() != 4 ||
      !type.tensor().layout.is_empty()) {
    return value;
  }
  TensorType stated = type.tensor();
  stated.layout = Layout(std::string(layout));
  build.graph().set_type(ValueId(value.id()), stated);
  return value;
}

ImportRule find_image_rule(std::string_view op) {
  constexpr std::pair<std::string_view, ImportRule> rules[] = {
      {"AvgPool", average_pool},
      {"AvgPoolGrad", average_pool_gradient},
      {"BiasAdd", add_bias},
      {"BiasAddGrad", bias_gradient},
      {"Conv2D", conv},
      {"Conv2DBackpropFilter", conv_filter_gradient},
      {"Conv2DBackpropInput", conv_input_gradient},
      {"DepthwiseConv2dNative", depthwise_conv},
      {"FusedBatchNorm", batch_norm},
      {"LRN", lrn},
      {"LRNGrad", lrn_gradient},
      {"MaxPool", max_pool},
      {"MaxPoolGrad", max_pool_gradient},
  };
  for (const auto& [name, rule] : rules) {
    if (name == op) return rule;
  }
  return nullptr;
}

}  // namespace tenon::documents::tensorscope
