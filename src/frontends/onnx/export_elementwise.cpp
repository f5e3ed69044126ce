#include "base/error.h"
#include "frontends/onnx/export_node.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

DType element_of(const Type& type) { return type.tensor().dtype; }

std::string scalar(NodeExport& node, DType dtype, double value) {
  return node.constant(Tensor::scalar(dtype, value));
}

// Swish is so recent that more programs support its decomposition.
void write_swish(NodeExport& node) {
  const std::string x = node.operand("x");
  std::string scaled = x;
  if (node.real("alpha") != 1) {
    scaled = node.emit_value(
        "Mul", {x, scalar(node, element_of(node.operand_type("x")), node.real("alpha"))});
  }
  node.emit("Mul", {x, node.emit_value("Sigmoid", {scaled})}, node.results());
}

void write_trunc(NodeExport& node) {
  const std::string x = node.operand("x");
  const std::string size = node.emit_value("Floor", {node.emit_value("Abs", {x})});
  node.need_opset(9);
  node.emit("Mul", {node.emit_value("Sign", {x}), size}, node.results());
}

// Mod takes the divisor's sign on integers only; on floats it is a - floor(a / b) * b.
void write_mod(NodeExport& node) {
  const std::string a = node.operand("a"), b = node.operand("b");
  const bool has_dividend_sign = node.text("sign") == "dividend";
  node.need_opset(10);
  if (has_dividend_sign || !is_float(element_of(node.operand_type("a")))) {
    node.emit("Mod", {a, b}, node.results(), {{"fmod", std::int64_t{has_dividend_sign}}});
    return;
  }
  const std::string whole = node.emit_value("Floor", {node.emit_value("Div", {a, b})});
  node.emit("Sub", {a, node.emit_value("Mul", {whole, b})}, node.results());
}

void write_shift(NodeExport& node) {
  node.need_opset(11);
  if (lowest_integer(element_of(node.operand_type("a"))) < 0) {
    throw Error("ONNX shifts the bits of unsigned integers alone", ErrorKind::Unsupported)
        .got(node.operand_type("a"))
        .hint("cast to an unsigned type of the same width first");
  }
  const bool is_left = node.node.op->name == "shift_left";
  node.emit("BitShift", node.operands(), node.results(),
            {{"direction", std::string(is_left ? "LEFT" : "RIGHT")}});
}

OnnxAttr element_attr(std::string name, DType dtype) {
  return {std::move(name), std::int64_t{onnx_element_type(dtype)}};
}

// ONNX shifts unsigned numbers only. Subtracting the nonnegative remainder by a power of two makes
// the division exact, and so equal to the shift.
void write_fixed_point_multiply(NodeExport& node) {
  node.need_opset(10);
  const std::int64_t shift = node.integer("shift");
  const int left = static_cast<int>(std::max<std::int64_t>(shift, 0)),
            right = 31 + static_cast<int>(std::max<std::int64_t>(-shift, 0));
  const auto number = [&](std::int64_t value) {
    return node.constant(Tensor::of(DType::I64, {}, std::vector<std::int64_t>{value}));
  };
  const auto as = [&](DType dtype, const std::string& value) {
    return node.emit_value("Cast", {value}, {element_attr("to", dtype)});
  };
  std::string wide = as(DType::I64, node.operand("x"));
  if (left > 0) wide = node.emit_value("Mul", {wide, number(std::int64_t{1} << left)});
  wide = node.emit_value("Mul", {wide, number(node.integer("multiplier"))});
  wide = node.emit_value("Add", {wide, number(std::int64_t{1} << (right - 1))});
  const std::string divisor = number(std::int64_t{1} << right);
  const std::string rest = node.emit_value("Mod", {wide, divisor});
  const std::string quotient =
      node.emit_value("Div", {node.emit_value("Sub", {wide, rest}), divisor});
  node.emit("Cast", {as(DType::I32, quotient)}, node.results(),
            {element_attr("to", element_of(node.result_type()))});
}

// Clips before rounding, like the op.
void write_simulated_quantize(NodeExport& node) {
  const std::string x = node.operand("x"), scale = node.operand("dom_scale");
  if (node.text("kind") == "identity") return node.emit("Identity", {x}, node.results());
  node.need_opset(12);
  const std::string held = node.emit_value(
      "Clip",
      {node.emit_value("Div", {x, scale}), node.operand("clip_min"), node.operand("clip_max")});
  node.emit("Mul", {node.emit_value("Round", {held}), scale}, node.results());
}

void write_cast(NodeExport& node) {
  const DType to = node.element("to");
  std::vector<OnnxAttr> attrs{element_attr("to", to)};
  if (node.node.op->find_attr("saturate") && !node.flag("saturate")) {
    node.need_opset(19);
    attrs.push_back({"saturate", std::int64_t{0}});
  }
  if (to == DType::F8E8M0) attrs.push_back({"round_mode", node.text("rounding")});
  node.emit("Cast", node.operands(), node.results(), std::move(attrs));
}

void write_dropout(NodeExport& node) {
  node.need_opset(12);
  const std::string training =
      node.has("training") ? node.operand("training") : scalar(node, DType::Bool, 1);
  node.emit("Dropout", {node.operand("x"), node.operand("ratio"), training}, node.results(),
            {{"seed", node.integer("seed")}});
}

constexpr ExportRule elementwise_exports[] = {
    {"cast", write_cast},         {"cast_text", write_cast},
    {"dropout", write_dropout},   {"fixed_point_multiply", write_fixed_point_multiply},
    {"mod", write_mod},           {"shift_left", write_shift},
    {"shift_right", write_shift}, {"simulated_quantize", write_simulated_quantize},
    {"swish", write_swish},       {"trunc", write_trunc},
};

}  // namespace

std::span<const ExportRule> elementwise_export_rules() { return elementwise_exports; }

}  // namespace tenon::frontends::onnx
