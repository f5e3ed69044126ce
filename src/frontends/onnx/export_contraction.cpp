#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/plain_ops.h"

#include <algorithm>
#include <cmath>

namespace tenon::frontends::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::string_view image = "NC", weights = "OI";

// Position of each logical axis in memory; ONNX only has the logical order.
Integers axes_in_memory(const Layout& layout, std::string_view leading) {
  Integers axes;
  for (char letter : std::string(leading) + "DHW") {
    if (layout.block(letter) != 1) {
      throw Error("ONNX has no tensors in blocks", ErrorKind::Unsupported).got(layout.text());
    }
    if (const auto axis = layout.axis(letter)) axes.push_back(static_cast<std::int64_t>(*axis));
  }
  return axes;
}

std::string in_logical_order(NodeExport& node, std::string_view operand, std::string_view leading) {
  const std::string name = node.operand(operand);
  if (name.empty()) return name;
  const Layout& layout = node.operand_type(operand).tensor().layout;
  if (layout.is_empty()) return name;
  return node.emit_value("Transpose", {name}, {{"perm", axes_in_memory(layout, leading)}});
}

// Emits an operator with results in logical order, and transposes them to the node's layout.
void emit_images(NodeExport& node, std::string op_type, std::vector<std::string> inputs,
                 std::vector<OnnxAttr> attrs, std::string_view leading = image) {
  std::vector<std::string> outputs = node.results();
  std::vector<std::pair<std::size_t, std::string>> to_move;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].empty() || node.result_type(k).tensor().layout.is_empty()) continue;
    to_move.emplace_back(k, outputs[k]);
    outputs[k] = node.fresh(outputs[k]);
  }
  const std::vector<std::string> ordered = outputs;
  node.emit(std::move(op_type), std::move(inputs), std::move(outputs), std::move(attrs));
  for (const auto& [k, name] : to_move) {
    const Integers axes = axes_in_memory(node.result_type(k).tensor().layout, leading);
    Integers inverse(axes.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      inverse[static_cast<std::size_t>(axes[axis])] = static_cast<std::int64_t>(axis);
    }
    node.emit("Transpose", {ordered[k]}, {name}, {{"perm", inverse}});
  }
}

std::vector<OnnxAttr> window_attrs(const NodeExport& node) {
  std::vector<OnnxAttr> attrs;
  for (const char* name : {"strides", "dilations", "pads"}) {
    Integers values = node.integers(name);
    if (!values.empty()) attrs.push_back({name, std::move(values)});
  }
  std::string auto_pad = node.text("auto_pad");
  if (auto_pad != "none") {
    std::ranges::transform(auto_pad, auto_pad.begin(),
                           [](char c) { return c == '_' ? c : static_cast<char>(c - 'a' + 'A'); });
    attrs.push_back({"auto_pad", std::move(auto_pad)});
  }
  return attrs;
}

std::vector<OnnxAttr> convolution_attrs(const NodeExport& node) {
  std::vector<OnnxAttr> attrs = window_attrs(node);
  attrs.push_back({"group", node.integer("groups")});
  return attrs;
}

DType dtype_of(const NodeExport& node, std::string_view operand) {
  return node.operand_type(operand).tensor().dtype;
}

bool is_byte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }

std::string cast(NodeExport& node, const std::string& value, DType dtype) {
  return node.emit_value("Cast", {value}, {{"to", std::int64_t{onnx_element_type(dtype)}}});
}

void write_matmul(NodeExport& node) {
  std::vector<std::string> operands = node.operands();
  const DType result = node.result_type().tensor().dtype;
  const bool widens = dtype_of(node, "a") != result || dtype_of(node, "b") != result;
  if (widens && result == DType::I32 && is_byte(dtype_of(node, "a")) &&
      is_byte(dtype_of(node, "b"))) {
    node.need_opset(10);
    node.emit("MatMulInteger", operands, node.results());
    return;
  }
  if (widens) {
    for (std::string& operand : operands) operand = cast(node, operand, result);
  }
  if (!is_float(result)) node.need_opset(9);
  node.emit("MatMul", operands, node.results());
}

// ONNX subtracts the padding value from the whole image; adds back the sums that this removes.
std::string integer_sums(NodeExport& node, const std::string& x, const std::string& w) {
  const std::int64_t zero = node.integer("pad_value");
  if (zero == 0) return node.emit_value("ConvInteger", {x, w}, convolution_attrs(node));
  node.need_opset(13);
  const std::string zero_point =
      node.constant(Tensor::scalar(dtype_of(node, "x"), static_cast<double>(zero)));
  const std::string y = node.emit_value("ConvInteger", {x, w, zero_point}, convolution_attrs(node));
  const std::size_t rank = node.result_type().tensor().rank();
  Integers axes, shape(rank - 1, 1);
  for (std::size_t axis = 1; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  shape.front() = -1;
  const std::string sums =
      node.emit_value("ReduceSum", {cast(node, w, DType::I32), node.integers_constant(axes)},
                      {{"keepdims", std::int64_t{0}}});
  const std::string scaled = node.emit_value(
      "Mul", {sums, node.constant(Tensor::scalar(DType::I32, static_cast<double>(zero)))});
  return node.emit_value("Add",
                         {y, node.emit_value("Reshape", {scaled, node.integers_constant(shape)})});
}

// ONNX's Conv supports only floats; integers are computed in f32, except for bytes.
void write_integer_conv(NodeExport& node, const std::string& x, const std::string& w) {
  const DType result = node.result_type().tensor().dtype;
  const bool has_bias = node.has("b");
  std::string y;
  if (is_byte(dtype_of(node, "x")) && is_byte(dtype_of(node, "w")) && result == DType::I32) {
    node.need_opset(10);
    y = integer_sums(node, x, w);
  } else {
    const std::string sums = node.emit_value(
        "Conv", {cast(node, x, DType::F32), cast(node, w, DType::F32)}, convolution_attrs(node));
    y = cast(node, sums, result);
  }
  if (!has_bias) {
    emit_images(node, "Identity", {y}, {});
    return;
  }
  Integers shape(node.result_type().tensor().rank(), 1);
  shape[1] = -1;
  const std::string bias =
      node.emit_value("Reshape", {node.operand("b"), node.integers_constant(shape)});
  emit_images(node, "Add", {y, bias}, {});
}

void write_conv(NodeExport& node) {
  const std::string x = in_logical_order(node, "x", image);
  const std::string w = in_logical_order(node, "w", weights);
  const DType result = node.result_type().tensor().dtype;
  if (!is_float(result)) {
    write_integer_conv(node, x, w);
    return;
  }
  std::vector<std::string> inputs{x, w};
  if (node.has("b")) inputs.push_back(node.operand("b"));
  for (std::size_t k = 0; k < 2; ++k) {
    if (dtype_of(node, k == 0 ? "x" : "w") != result) inputs[k] = cast(node, inputs[k], result);
  }
  emit_images(node, "Conv", std::move(inputs), convolution_attrs(node));
}

// Extents of the spatial axes in logical order.
std::vector<Dim> spatial_extents(const TensorType& type, std::string_view leading) {
  if (type.layout.is_empty()) return {type.dims.begin() + 2, type.dims.end()};
  const Integers axes = axes_in_memory(type.layout, leading);
  std::vector<Dim> extents;
  for (std::size_t k = 2; k < axes.size(); ++k) {
    extents.push_back(type.dims[static_cast<std::size_t>(axes[k])]);
  }
  return extents;
}

std::int64_t value_or(const Integers& values, std::size_t at, std::int64_t otherwise) {
  return values.empty() ? otherwise : values[at];
}

// ONNX accepts an output shape only without pads; with both, the missing extent at the end becomes
// output padding.
void state_output_shape(const NodeExport& node, std::vector<OnnxAttr>& attrs) {
  const Integers shape = node.integers("output_shape"), pads = node.integers("pads");
  if (shape.empty()) return;
  if (pads.empty()) {
    attrs.push_back({"output_shape", shape});
    return;
  }
  const std::vector<Dim> x = spatial_extents(node.operand_type("x").tensor(), image);
  const std::vector<Dim> w = spatial_extents(node.operand_type("w").tensor(), weights);
  const Integers strides = node.integers("strides"), dilations = node.integers("dilations");
  Integers new_pads = pads, output_padding(shape.size(), 0);
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (!x[k].is_constant() || !w[k].is_constant()) {
      throw Error("conv_transpose: ONNX needs its extents as numbers", ErrorKind::Unsupported);
    }
    const std::int64_t reach = value_or(dilations, k, 1) * (w[k].constant() - 1) + 1;
    const std::int64_t whole = value_or(strides, k, 1) * (x[k].constant() - 1) + reach;
    const std::int64_t end = whole - pads[k] - shape[k];
    new_pads[shape.size() + k] = std::max<std::int64_t>(end, 0);
    output_padding[k] = std::max<std::int64_t>(-end, 0);
  }
  std::erase_if(attrs, [](const OnnxAttr& attr) { return attr.name == "pads"; });
  attrs.push_back({"pads", new_pads});
  attrs.push_back({"output_padding", output_padding});
}

void write_conv_transpose(NodeExport& node) {
  std::vector<OnnxAttr> attrs = convolution_attrs(node);
  const Integers output_padding = node.integers("output_padding");
  if (!output_padding.empty()) attrs.push_back({"output_padding", output_padding});
  state_output_shape(node, attrs);
  std::vector<std::string> inputs{in_logical_order(node, "x", image),
                                  in_logical_order(node, "w", weights)};
  if (node.has("b")) inputs.push_back(node.operand("b"));
  emit_images(node, "ConvTranspose", std::move(inputs), std::move(attrs));
}

// The weight gradient is itself a convolution with exchanged images and channels, and exchanged
// strides and dilations. A stride with a remainder makes the result too long.
void write_conv_weight_gradient(NodeExport& node) {
  if (node.integer("groups") != 1) {
    throw Error("conv_weight_gradient: ONNX has no operator for groups", ErrorKind::Unsupported);
  }
  const std::size_t rank = node.integers("kernel_shape").size() + 2;
  Integers swapped(rank), axes;
  for (std::size_t k = 0; k < rank; ++k) swapped[k] = static_cast<std::int64_t>(k < 2 ? 1 - k : k);
  for (std::size_t k = 2; k < rank; ++k) axes.push_back(static_cast<std::int64_t>(k));
  std::vector<OnnxAttr> attrs = window_attrs(node);
  for (OnnxAttr& attr : attrs) {
    if (attr.name == "strides") {
      attr.name = "dilations";
    } else if (attr.name == "dilations") {
      attr.name = "strides";
    }
  }
  const auto moved = [&](const std::string& value) {
    return node.emit_value("Transpose", {value}, {{"perm", swapped}});
  };
  const std::string x = moved(in_logical_order(node, "x", image));
  const std::string dy = moved(in_logical_order(node, "dy", image));
  const std::string sums = node.emit_value("Conv", {x, dy}, std::move(attrs));
  node.need_opset(10);
  const std::string cut =
      node.emit_value("Slice", {sums, node.integers_constant(Integers(axes.size(), 0)),
                                node.integers_constant(node.integers("kernel_shape")),
                                node.integers_constant(axes)});
  emit_images(node, "Transpose", {cut}, {{"perm", swapped}}, weights);
}

void write_deform_conv(NodeExport& node) {
  node.need_opset(19);
  std::vector<OnnxAttr> attrs = convolution_attrs(node);
  attrs.push_back({"offset_group", node.integer("offset_groups")});
  node.emit("DeformConv", node.operands(), node.results(), std::move(attrs));
}

std::vector<OnnxAttr> pool_attrs(NodeExport& node, int dilations_since) {
  std::vector<OnnxAttr> attrs = window_attrs(node);
  attrs.push_back({"kernel_shape", node.integers("kernel_shape")});
  const Integers dilations = node.integers("dilations");
  if (std::ranges::all_of(dilations, [](std::int64_t step) { return step == 1; })) {
    std::erase_if(attrs, [](const OnnxAttr& attr) { return attr.name == "dilations"; });
  } else {
    node.need_opset(dilations_since);
  }
  if (node.flag("ceil_mode")) {
    node.need_opset(std::min(dilations_since, node.node.op->name == "lp_pool" ? 18 : 10));
    attrs.push_back({"ceil_mode", std::int64_t{1}});
  }
  return attrs;
}

void write_max_pool(NodeExport& node) {
  std::vector<OnnxAttr> attrs = pool_attrs(node, 10);
  if (!is_float(dtype_of(node, "x"))) node.need_opset(12);
  if (node.results().size() > 1 && !node.result(1).empty()) {
    node.need_opset(8);
    attrs.push_back({"storage_order", std::int64_t{node.text("index_order") == "column_major"}});
  }
  emit_images(node, "MaxPool", {in_logical_order(node, "x", image)}, std::move(attrs));
}

void write_average_pool(NodeExport& node) {
  std::vector<OnnxAttr> attrs = pool_attrs(node, 19);
  if (node.flag("count_include_pad")) {
    node.need_opset(7);
    attrs.push_back({"count_include_pad", std::int64_t{1}});
  }
  emit_images(node, "AveragePool", {in_logical_order(node, "x", image)}, std::move(attrs));
}

void write_lp_pool(NodeExport& node) {
  std::vector<OnnxAttr> attrs = pool_attrs(node, 18);
  const double p = node.real("p");
  if (p != std::floor(p)) {
    throw Error("lp_pool: ONNX takes whole orders only", ErrorKind::Unsupported).got(p);
  }
  node.need_opset(2);
  attrs.push_back({"p", static_cast<std::int64_t>(p)});
  emit_images(node, "LpPool", {in_logical_order(node, "x", image)}, std::move(attrs));
}

void write_max_unpool(NodeExport& node) {
  node.need_opset(9);
  std::vector<std::string> inputs{node.operand("x"), node.operand("indices")};
  if (node.has_attr("output_shape") || node.has("output_shape")) {
    inputs.push_back(node.integers_input("output_shape"));
  }
  std::vector<OnnxAttr> attrs = window_attrs(node);
  attrs.push_back({"kernel_shape", node.integers("kernel_shape")});
  node.emit("MaxUnpool", std::move(inputs), node.results(), std::move(attrs));
}

void write_col2im(NodeExport& node) {
  node.need_opset(18);
  node.emit(
      "Col2Im",
      {node.operand("x"), node.integers_input("image_shape"), node.integers_input("block_shape")},
      node.results(), window_attrs(node));
}

void write_lrn(NodeExport& node) {
  emit_images(node, "LRN", {in_logical_order(node, "x", image)}, plain_attrs(node));
}

void write_requantize(NodeExport& node) {
  node.need_opset(10);
  if (element_count(node.operand_type("zero_point").tensor()) != Dim(1)) {
    throw Error("requantize: ONNX's sums have one zero point", ErrorKind::Unsupported)
        .got(node.operand_type("zero_point"));
  }
  const TensorType& scale_type = node.operand_type("scale").tensor();
  std::string scale = node.operand("scale");
  const auto rank = static_cast<std::int64_t>(node.operand_type("x").tensor().rank());
  if (scale_type.rank() == 1 && rank > 1 && !(scale_type.dims[0] == Dim(1))) {
    Integers shape(static_cast<std::size_t>(rank), 1);
    const std::int64_t axis = node.integer("axis");
    shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = -1;
    scale = node.emit_value("Reshape", {scale, node.integers_constant(shape)});
  }
  const std::string scaled =
      node.emit_value("Mul", {cast(node, node.operand("x"), DType::F32), scale});
  const std::string one = node.constant(Tensor::scalar(DType::F32, 1));
  node.emit("QuantizeLinear", {scaled, one, node.operand("zero_point")}, node.results());
}

constexpr ExportRule contraction_exports[] = {
    {"average_pool", write_average_pool},
    {"col2im", write_col2im},
    {"conv", write_conv},
    {"conv_transpose", write_conv_transpose},
    {"conv_weight_gradient", write_conv_weight_gradient},
    {"deform_conv", write_deform_conv},
    {"lp_pool", write_lp_pool},
    {"lrn", write_lrn},
    {"matmul", write_matmul},
    {"max_pool", write_max_pool},
    {"max_unpool", write_max_unpool},
    {"requantize", write_requantize},
};

}  // namespace

std::span<const ExportRule> contraction_export_rules() { return contraction_exports; }

}  // namespace tenon::frontends::onnx
