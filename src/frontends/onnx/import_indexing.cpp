#include "base/error.h"
#include "frontends/onnx/op_call.h"

namespace tenon::onnx {
namespace {

void import_gather(NodeImport& node) {
  const char* op = node.op_type() == "Gather" ? "gather" : "gather_elements";
  node.output(node.call(op, {node.input(0), node.input(1)}, {{"axis", node.integer("axis")}}));
}

void import_gather_nd(NodeImport& node) {
  node.output(node.call("gather_nd", {node.input(0), node.input(1)},
                        {{"batch_dims", node.integer("batch_dims")}}));
}

void import_scatter(NodeImport& node) {
  node.output(
      node.call("scatter_elements", {node.input(0), node.input(1), node.input(2)},
                {{"axis", node.integer("axis")}, {"reduction", node.text("reduction", "none")}}));
}

void import_scatter_nd(NodeImport& node) {
  node.output(node.call("scatter_nd", {node.input(0), node.input(1), node.input(2)},
                        {{"reduction", node.text("reduction", "none")}}));
}

void import_tensor_scatter(NodeImport& node) {
  node.output(
      node.call("tensor_scatter", {node.input(0), node.input(1), node.input_or_none(2)},
                {{"axis", node.integer("axis", -2)}, {"mode", node.text("mode", "linear")}}));
}

void import_one_hot(NodeImport& node) {
  node.output(OpCall(node, "one_hot")
                  .operand("indices", node.input(0))
                  .dynamic("depth", 1)
                  .operand("values", node.input(2))
                  .attr({"axis", node.integer("axis", -1)})
                  .result());
}

void import_reverse_sequence(NodeImport& node) {
  node.output(node.call("reverse_sequence", {node.input(0), node.input(1)},
                        {{"time_axis", node.integer("time_axis", 0)},
                         {"batch_axis", node.integer("batch_axis", 1)}}));
}

void import_compress(NodeImport& node) {
  OpCall call(node, "compress");
  call.operand("x", node.input(0)).operand("condition", node.input(1));
  if (node.has_attr("axis")) call.attr({"axis", node.integer("axis")});
  node.output(call.result());
}

void import_nonzero(NodeImport& node) { node.output(node.call("nonzero", {node.input(0)})); }

// An empty tensor stands for a missing input where ONNX did not yet let one be left out.
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
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  call.operand("x", node.input(0))
      .attr({"axes", node.integers("axes")})
      .attr({"mode", node.text("mode", "nearest")})
      .attr({"coordinates", coordinates})
      .attr({"rounding", node.text("nearest_mode", "round_prefer_floor")})
      .attr({"aspect", node.text("keep_aspect_ratio_policy", "stretch")})
      .attr({"cubic_a", node.real("cubic_coeff_a", -0.75)})
      .attr({"exclude_outside", node.integer("exclude_outside") != 0})
      .attr({"antialias", node.integer("antialias") != 0})
      .attr({"extrapolation", node.real("extrapolation_value")});
  if (coordinates == "tf_crop_and_resize") call.dynamic("roi", 1);
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

void import_affine_grid(NodeImport& node) {
  node.output(OpCall(node, "affine_grid")
                  .operand("theta", node.input(0))
                  .dynamic("size", 1)
                  .attr({"align_corners", node.integer("align_corners") != 0})
                  .result());
}

void import_roi_align(NodeImport& node) {
  const char* otherwise = node.opset() < 16 ? "output_half_pixel" : "half_pixel";
  const std::string positions = node.text("coordinate_transformation_mode", otherwise);
  node.output(node.call("roi_align", {node.input(0), node.input(1), node.input(2)},
                        {{"mode", node.text("mode", "avg")},
                         {"height", node.integer("output_height", 1)},
                         {"width", node.integer("output_width", 1)},
                         {"sampling_ratio", node.integer("sampling_ratio")},
                         {"spatial_scale", node.real("spatial_scale", 1)},
                         {"half_pixel", positions == "half_pixel"}}));
}

void import_max_roi_pool(NodeImport& node) {
  const std::vector<std::int64_t> bins = node.integers("pooled_shape");
  if (bins.size() != 2) throw Error("pooled_shape must be a height and a width");
  node.output(node.call(
      "max_roi_pool", {node.input(0), node.input(1)},
      {{"height", bins[0]}, {"width", bins[1]}, {"spatial_scale", node.real("spatial_scale", 1)}}));
}

constexpr Handler indexing_table[] = {
    {"AffineGrid", import_affine_grid},
    {"Compress", import_compress},
    {"Gather", import_gather},
    {"GatherElements", import_gather},
    {"GatherND", import_gather_nd},
    {"GridSample", import_grid_sample},
    {"MaxRoiPool", import_max_roi_pool},
    {"NonZero", import_nonzero},
    {"OneHot", import_one_hot},
    {"Resize", import_resize},
    {"ReverseSequence", import_reverse_sequence},
    {"RoiAlign", import_roi_align},
    {"Scatter", import_scatter},
    {"ScatterElements", import_scatter},
    {"ScatterND", import_scatter_nd},
    {"TensorScatter", import_tensor_scatter},
    {"Upsample", import_upsample},
};

}  // namespace

std::span<const Handler> indexing_handlers() { return indexing_table; }

}  // namespace tenon::onnx
