// Export of control flow, sequences, selection, texts, random numbers, signals and optimizer steps.
#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/plain_ops.h"

#include <bit>
#include <cctype>
#include <limits>

namespace tenon::frontends::onnx {
namespace {

using Names = std::vector<std::string>;

OnnxAttr element_attr(const NodeExport& node, const char* to) {
  return {to, std::int64_t{onnx_element_type(node.element("dtype"))}};
}

void add_list(std::vector<OnnxAttr>& attrs, const NodeExport& node, std::string_view from,
              const char* to) {
  if (std::vector<std::int64_t> values = node.integers(from); !values.empty()) {
    attrs.push_back({to, std::move(values)});
  }
}

Names slice(const Names& names, std::size_t first, std::size_t last) {
  last = std::min(last, names.size());
  return {names.begin() + static_cast<std::ptrdiff_t>(std::min(first, last)),
          names.begin() + static_cast<std::ptrdiff_t>(last)};
}

void write_if(NodeExport& node) {
  node.need_opset(13);
  const Names captured = slice(node.operands(), 1, node.operands().size());
  node.emit("If", {node.operand("condition")}, node.results(),
            {{"then_branch", OnnxBody{&node.node.bodies[0], captured}},
             {"else_branch", OnnxBody{&node.node.bodies[1], captured}}});
}

void write_loop(NodeExport& node) {
  node.need_opset(13);
  Names operands = node.operands();
  operands.resize(std::max<std::size_t>(operands.size(), 2));
  const auto first_captured = 2 + static_cast<std::size_t>(node.integer("carried_count"));
  node.emit(
      "Loop", slice(operands, 0, first_captured), node.results(),
      {{"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}}});
}

void write_scan(NodeExport& node) {
  node.need_opset(11);
  const Names operands = node.operands();
  const auto first_captured =
      static_cast<std::size_t>(node.integer("state_count") + node.integer("input_count"));
  std::vector<OnnxAttr> attrs{
      {"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}},
      {"num_scan_inputs", node.integer("input_count")}};
  add_list(attrs, node, "input_axes", "scan_input_axes");
  add_list(attrs, node, "input_reverse", "scan_input_directions");
  add_list(attrs, node, "output_axes", "scan_output_axes");
  add_list(attrs, node, "output_reverse", "scan_output_directions");
  node.emit("Scan", slice(operands, 0, first_captured), node.results(), std::move(attrs));
}

void write_sequence_map(NodeExport& node) {
  node.need_opset(17);
  const Names operands = node.operands();
  const auto first_captured = static_cast<std::size_t>(node.integer("input_count"));
  node.emit(
      "SequenceMap", slice(operands, 0, first_captured), node.results(),
      {{"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}}});
}

void write_optional(NodeExport& node) {
  node.need_opset(15);
  std::vector<OnnxAttr> attrs;
  const Type& type = node.result_type();
  if (!node.has("x") && type.is_known()) attrs.push_back({"type", type.element()});
  node.emit("Optional", node.operands(), node.results(), std::move(attrs));
}

void write_top_k(NodeExport& node) {
  node.need_opset(11);
  Names results = node.results();
  results.resize(2);
  node.emit("TopK", {node.operand("x"), node.integer_input("k", true)}, results, plain_attrs(node));
}

void write_string_split(NodeExport& node) {
  node.need_opset(20);
  Names results = node.results();
  if (results.size() < 2 || results[1].empty()) results = {results[0], node.fresh("counts")};
  node.emit("StringSplit", {node.operand("x")}, results, plain_attrs(node));
}

// ONNX's seeds are floats; without a seed the choice is left to the reader.
void add_seed(std::vector<OnnxAttr>& attrs, const NodeExport& node) {
  const std::int64_t seed = node.integer("seed");
  if (seed < std::numeric_limits<std::int32_t>::min() ||
      seed > std::numeric_limits<std::int32_t>::max()) {
    return;
  }
  const auto number = std::bit_cast<float>(static_cast<std::int32_t>(seed));
  if (number == number) attrs.push_back({"seed", static_cast<double>(number)});
}

void write_random(NodeExport& node) {
  const bool is_normal = node.node.op->name == "random_normal";
  std::vector<OnnxAttr> attrs{
      element_attr(node, "dtype"),
      {is_normal ? "mean" : "low", node.real(is_normal ? "mean" : "low")},
      {is_normal ? "scale" : "high", node.real(is_normal ? "deviation" : "high")}};
  add_seed(attrs, node);
  const std::string op_type = is_normal ? "RandomNormal" : "RandomUniform";
  const Type& type = node.result_type();
  if (type.is_tensor() && all_constant(type.tensor().dims)) {
    attrs.push_back({"shape", constants(type.tensor().dims)});
    node.emit(op_type, {}, node.results(), std::move(attrs));
    return;
  }
  node.need_opset(9);
  const std::string like = node.emit_value("ConstantOfShape", {node.integers_input("shape")});
  node.emit(op_type + "Like", {like}, node.results(), std::move(attrs));
}

void write_bernoulli(NodeExport& node) {
  node.need_opset(15);
  std::vector<OnnxAttr> attrs;
  if (node.has_attr("dtype")) attrs.push_back(element_attr(node, "dtype"));
  add_seed(attrs, node);
  node.emit("Bernoulli", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_multinomial(NodeExport& node) {
  node.need_opset(7);
  std::vector<OnnxAttr> attrs{{"sample_size", node.integer("sample_count")},
                              element_attr(node, "dtype")};
  add_seed(attrs, node);
  node.emit("Multinomial", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_dft(NodeExport& node) {
  node.need_opset(17);
  std::vector<OnnxAttr> attrs{flag_attr(node, "inverse", "inverse"),
                              flag_attr(node, "onesided", "onesided")};
  Names inputs{node.operand("x"), ""};
  if (node.has("length") || node.has_attr("length")) inputs[1] = node.integer_input("length");
  if (node.has("axis")) node.need_opset(20);
  if (node.opset() >= 20) {
    inputs.push_back(node.integer_input("axis"));
  } else {
    attrs.push_back({"axis", node.integer("axis")});
  }
  node.emit("DFT", inputs, node.results(), std::move(attrs));
}

void write_signal_window(NodeExport& node) {
  node.need_opset(17);
  std::string op_type = node.text("kind") + "Window";
  op_type.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(op_type.front())));
  node.emit(op_type, {node.integer_input("size")}, node.results(),
            {flag_attr(node, "periodic", "periodic"), element_attr(node, "output_datatype")});
}

void write_image_decode(NodeExport& node) {
  node.need_opset(20);
  const std::string format = node.text("pixel_format");
  const char* word = format == "grayscale" ? "Grayscale" : format == "bgr" ? "BGR" : "RGB";
  node.emit("ImageDecoder", {node.operand("x")}, node.results(),
            {{"pixel_format", std::string(word)}});
}

void write_momentum(NodeExport& node) {
  std::vector<OnnxAttr> attrs = plain_attrs(node);
  attrs.push_back({"mode", std::string(node.flag("nesterov") ? "nesterov" : "standard")});
  node.emit("Momentum", node.operands(), node.results(), std::move(attrs), std::string(kTraining));
}

constexpr ExportRule control_exports[] = {
    {"bernoulli", write_bernoulli},
    {"dft", write_dft},
    {"if", write_if},
    {"image_decode", write_image_decode},
    {"loop", write_loop},
    {"momentum", write_momentum},
    {"multinomial", write_multinomial},
    {"optional", write_optional},
    {"random_normal", write_random},
    {"random_uniform", write_random},
    {"scan", write_scan},
    {"sequence_map", write_sequence_map},
    {"signal_window", write_signal_window},
    {"string_split", write_string_split},
    {"top_k", write_top_k},
};

}  // namespace

std::span<const ExportRule> control_export_rules() { return control_exports; }

}  // namespace tenon::frontends::onnx
