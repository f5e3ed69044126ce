#include "base/error.h"
#include "frontends/onnx/op_call.h"
#include "frontends/onnx/plain_ops.h"

namespace tenon::frontends::onnx {
namespace {

// Returns whether an input is present and nonempty: an empty tensor represents a missing input in
// opsets without optional inputs.
bool has_elements(const NodeImport& node, std::size_t input) {
  if (!node.has_input(input)) return false;
  const Type& type = node.type(node.input(input));
  return !type.is_tensor() || element_count(type.tensor()) != Dim(0);
}

// Before opset 11 positions were divided by the scale and rounded down.
void import_plain_resize(NodeImport& node, OpCall call) {
  const std::string mode = node.text("mode", "nearest");
  node.output(call.operand("x", node.input(0))
                  .attr({"mode", mode == "bilinear" ? "linear" : mode})
                  .attr({"coordinates", "asymmetric"})
                  .attr({"rounding", "floor"})
                  .result());
}

void import_upsample(NodeImport& node) {
  OpCall call(node, "resize");
  if (node.has_input(1)) {
    call.dynamic("scales", 1);
  } else if (node.has_attr("scales")) {
    call.attr({"scales", node.reals("scales")});
  } else {
    call.attr({"scales", std::vector<double>{1, 1, node.real("height_scale", 1),
                                             node.real("width_scale", 1)}});
  }
  import_plain_resize(node, std::move(call));
}

void import_resize(NodeImport& node) {
  OpCall call(node, "resize");
  if (node.opset() < 11) return import_plain_resize(node, std::move(call.dynamic("scales", 1)));
  call.operand("x", node.input(0));
  for (Attr& attr : plain_attrs(node)) call.attr(std::move(attr));
  if (node.text("coordinate_transformation_mode") == "tf_crop_and_resize") call.dynamic("roi", 1);
  if (has_elements(node, 2)) {
    call.dynamic("scales", 2);
  } else if (has_elements(node, 3)) {
    call.dynamic("sizes", 3);
  } else {
    throw Error("neither scales nor sizes are given");
  }
  node.output(call.result());
}

void import_grid_sample(NodeImport& node) {
  const std::string given = node.text("mode", "linear");
  const std::string mode = given == "bilinear" ? "linear" : given == "bicubic" ? "cubic" : given;
  node.output(node.call("grid_sample", {node.input(0), node.input(1)},
                        {{"mode", mode},
                         {"padding", node.text("padding_mode", "zeros")},
                         {"align_corners", node.integer("align_corners") != 0}}));
}

void import_roi_align(NodeImport& node) {
  const char* otherwise = node.opset() < 16 ? "output_half_pixel" : "half_pixel";
  const std::string positions = node.text("coordinate_transformation_mode", otherwise);
  std::vector<Attr> attrs = plain_attrs(node);
  attrs.emplace_back("half_pixel", positions == "half_pixel");
  node.output(node.call("roi_align", {node.input(0), node.input(1), node.input(2)}, attrs));
}

void import_max_roi_pool(NodeImport& node) {
  const std::vector<std::int64_t> bins = node.integers("pooled_shape");
  if (bins.size() != 2) throw Error("pooled_shape must be a height and a width");
  node.output(node.call(
      "max_roi_pool", {node.input(0), node.input(1)},
      {{"height", bins[0]}, {"width", bins[1]}, {"spatial_scale", node.real("spatial_scale", 1)}}));
}

// k was an attribute before opset 10 and is an input since.
void import_top_k(NodeImport& node) {
  OpCall call(node, "top_k");
  call.operand("x", node.input(0));
  for (Attr& attr : plain_attrs(node)) call.attr(std::move(attr));
  if (node.opset() < 10) {
    call.attr({"k", node.integer("k")});
  } else {
    call.dynamic("k", 1);
  }
  node.outputs(call.results(2));
}

constexpr Handler indexing_table[] = {
    {"GridSample", import_grid_sample},
    {"MaxRoiPool", import_max_roi_pool},
    {"Resize", import_resize},
    {"RoiAlign", import_roi_align},
    {"TopK", import_top_k},
    {"Upsample", import_upsample},
};

}  // namespace

std::span<const Handler> indexing_handlers() { return indexing_table; }

}  // namespace tenon::frontends::onnx
