#include "base/error.h"
#include "documents/relay/export_node.h"
#include "documents/relay/window_export.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

using Exprs = std::vector<ExprId>;
using Named = ExprBuilder::Named;

Exprs pool(const ExportNode& node) {
  const ExprBuilder& b = node.build();
  const bool is_max = node.node().op->name == "max_pool";
  if (node.wants(1)) throw node.unsupported("positions of the greatest elements");
  const ImageText image = image_text(node, node.type("x"));
  const Integers kernel = node.integers("kernel_shape");
  const WindowText window = window_text(node, image, kernel);
  const std::string kind = is_max ? "max" : "avg";
  const bool is_whole = all_constant(image.extents) && constants(image.extents) == kernel &&
                        window.strides == kernel &&
                        std::all_of(window.pads.begin(), window.pads.end(),
                                    [](std::int64_t pad) { return pad == 0; });
  std::vector<Named> attrs = {{"layout", image.layout}};
  add_out_layout(image, node.result_type(), attrs);
  if (is_whole)
    return {
        b.call(concat("nn.global_", kind, "_pool", image.count, "d"), {node.operand("x")}, attrs)};
  attrs.insert(attrs.end(), {{"pool_size", kernel},
                             {"strides", window.strides},
                             {"dilation", window.dilations},
                             {"padding", window.pads},
                             {"ceil_mode", node.flag("ceil_mode")}});
  if (!is_max) attrs.push_back({"count_include_pad", node.flag("count_include_pad")});
  return {b.call(concat("nn.", kind, "_pool", image.count, "d"), {node.operand("x")}, attrs)};
}

Exprs resize(const ExportNode& node) {
  const TensorType &x = node.type("x"), &y = node.result_type();
  if (x.rank() != 4) throw node.unsupported("other than two spatial axes");
  const bool is_last = y.dims[1] == x.dims[1] ? false : y.dims[3] == x.dims[3];
  const std::size_t first = is_last ? 1 : 2;
  if (!(y.dims[0] == x.dims[0]) || !(y.dims[is_last ? 3 : 1] == x.dims[is_last ? 3 : 1])) {
    throw node.unsupported("axes that are not spatial");
  }
  const std::string mode = node.text("mode"), coordinates = node.text("coordinates"),
                    rounding = node.text("rounding");
  const bool is_known = coordinates == "half_pixel" || coordinates == "align_corners" ||
                        coordinates == "asymmetric" || coordinates == "pytorch_half_pixel";
  if (!is_known || node.flag("antialias"))
    throw node.unsupported(concat("coordinates ", coordinates));
  const Integers sizes = node.numbers({y.dims[first], y.dims[first + 1]});
  std::vector<Named> attrs = {
      {"size", sizes},
      {"layout", std::string(is_last ? "NHWC" : "NCHW")},
      {"method", mode == "nearest" ? std::string("nearest_neighbor") : mode},
      {"coordinate_transformation_mode", coordinates}};
  if (mode == "nearest") {
    attrs.push_back(
        {"rounding_method", rounding == "round_prefer_floor" ? std::string("round") : rounding});
  }
  if (mode == "cubic") {
    attrs.push_back({"cubic_alpha", node.real("cubic_a")});
    attrs.push_back({"cubic_exclude", std::int64_t{node.flag("exclude_outside")}});
  }
  return {node.build().call("image.resize2d", {node.operand("x")}, attrs)};
}

Exprs depth_space(const ExportNode& node) {
  if (!node.type("x").layout.is_empty() && node.type("x").layout.text() != "NCHW") {
    throw node.unsupported(concat("layout ", node.type("x").layout.text()));
  }
  const bool is_to_space = node.node().op->name == "depth_to_space";
  std::vector<Named> attrs = {{"block_size", node.integer("block")}};
  if (node.text("mode") == "crd") attrs.push_back({"mode", "CRD"});
  return {node.build().call(is_to_space ? "nn.depth_to_space" : "nn.space_to_depth",
                            {node.operand("x")}, attrs)};
}

}  // namespace

void add_pooling_exports(ExportRules& rules) {
  rules["max_pool"] = {pool, false};
  rules["average_pool"] = {pool, false};
  rules["resize"] = {resize, false};
  rules["depth_to_space"] = {depth_space, false};
  rules["space_to_depth"] = {depth_space, false};
}

}  // namespace tenon::documents::relay
