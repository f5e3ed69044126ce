#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/plain_ops.h"

namespace tenon::frontends::onnx {
namespace {

// Returns an input for a dynamic list; "" for an empty attribute.
std::string list_input(NodeExport& node, std::string_view name) {
  if (node.has(name)) return node.operand(name);
  const AttrValue* given = node.node.attrs.find(name);
  return given && !std::get<Dims>(*given).empty() ? node.integers_input(name) : "";
}

void emit_whole(NodeExport& node, std::string op_type, std::vector<std::string> inputs,
                std::vector<OnnxAttr> attrs = {}) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  node.emit(std::move(op_type), std::move(inputs), node.results(), std::move(attrs));
}

OnnxAttr text_attr(const NodeExport& node, std::string_view name, std::string onnx_name) {
  return {std::move(onnx_name), node.text(name)};
}

[[noreturn]] void refuse(std::string_view what) {
  throw Error(concat("ONNX has no ", what), ErrorKind::Unsupported);
}

void export_split(NodeExport& node) {
  std::vector<OnnxAttr> attrs{{"axis", node.integer("axis")}};
  const std::string sizes = list_input(node, "sizes");
  node.need_opset(sizes.empty() ? 18 : 13);
  if (sizes.empty()) {
    attrs.push_back({"num_outputs", static_cast<std::int64_t>(node.results().size())});
  }
  emit_whole(node, "Split", {node.operand("x"), sizes}, std::move(attrs));
}

void export_pad(NodeExport& node) {
  const std::string axes = list_input(node, "axes");
  const std::string mode = node.text("mode");
  node.need_opset(mode == "wrap" ? 19 : axes.empty() ? 11 : 18);
  emit_whole(node, "Pad",
             {node.operand("x"), node.integers_input("pads"), node.operand("value"), axes},
             {{"mode", mode}});
}

void export_space_to_depth(NodeExport& node) {
  const std::string x = node.operand("x");
  const std::vector<OnnxAttr> attrs = plain_attrs(node);
  if (node.text("mode") == "dcr") return emit_whole(node, "SpaceToDepth", {x}, attrs);
  // ONNX has one order of channels; derives the permutation to the other one.
  const Dim channels = node.operand_type("x").tensor().dims.at(1);
  if (!channels.is_constant()) refuse("such an order for an unknown number of channels");
  const std::int64_t block = node.integer("block");
  const std::string packed = node.emit_value("SpaceToDepth", {x}, attrs);
  const std::string shape = node.emit_value("Shape", {packed});
  const std::string parted = node.emit_value(
      "Reshape", {packed, node.integers_constant({0, block * block, channels.constant(), -1})});
  const std::string swapped =
      node.emit_value("Transpose", {parted}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  emit_whole(node, "Reshape", {swapped, shape});
}

void export_resize(NodeExport& node) {
  const std::string coordinates = node.text("coordinates");
  if (coordinates == "tf_half_pixel_for_nn") refuse("such coordinates since opset 13");
  std::vector<OnnxAttr> attrs{text_attr(node, "mode", "mode"),
                              text_attr(node, "coordinates", "coordinate_transformation_mode"),
                              text_attr(node, "rounding", "nearest_mode"),
                              {"cubic_coeff_a", node.real("cubic_a")},
                              flag_attr(node, "exclude_outside", "exclude_outside"),
                              {"extrapolation_value", node.real("extrapolation")}};
  const std::vector<std::int64_t> axes = node.integers("axes");
  const bool is_newer = !axes.empty() || node.flag("antialias") || node.text("aspect") != "stretch";
  node.need_opset(coordinates == "half_pixel_symmetric" ? 19 : is_newer ? 18 : 13);
  if (is_newer) {
    if (!axes.empty()) attrs.push_back({"axes", axes});
    attrs.push_back(flag_attr(node, "antialias", "antialias"));
    attrs.push_back(text_attr(node, "aspect", "keep_aspect_ratio_policy"));
  }
  emit_whole(node, "Resize",
             {node.operand("x"), node.reals_input("roi"), node.reals_input("scales"),
              list_input(node, "sizes")},
             std::move(attrs));
}

void export_roi_align(NodeExport& node) {
  node.need_opset(16);
  const char* positions = node.flag("half_pixel") ? "half_pixel" : "output_half_pixel";
  std::vector<OnnxAttr> attrs = plain_attrs(node);
  attrs.push_back({"coordinate_transformation_mode", std::string(positions)});
  emit_whole(node, "RoiAlign", node.operands(), std::move(attrs));
}

void export_max_roi_pool(NodeExport& node) {
  emit_whole(node, "MaxRoiPool", node.operands(),
             {{"pooled_shape", std::vector{node.integer("height"), node.integer("width")}},
              {"spatial_scale", node.real("spatial_scale")}});
}

constexpr ExportRule shape_exports[] = {
    {"max_roi_pool", export_max_roi_pool},
    {"pad", export_pad},
    {"resize", export_resize},
    {"roi_align", export_roi_align},
    {"space_to_depth", export_space_to_depth},
    {"split", export_split},
};

}  // namespace

std::span<const ExportRule> shape_export_rules() { return shape_exports; }

}  // namespace tenon::frontends::onnx
