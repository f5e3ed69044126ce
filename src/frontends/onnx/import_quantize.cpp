#include "frontends/onnx/dynamic_quantize.h"
#include "frontends/onnx/plain_ops.h"

namespace tenon::onnx {
namespace {

void import_dynamic_quantize(NodeImport& node) {
  const DynamicBytes bytes = dynamically_quantized(node, node.input(0));
  node.outputs({bytes.values, bytes.scale, bytes.zero_point});
}

constexpr Handler quantize_table[] = {
    {"DequantizeLinear", import_plain, "com.microsoft"},
    {"DynamicQuantizeLinear", import_dynamic_quantize},
    {"QuantizeLinear", import_plain, "com.microsoft"},
};

}  // namespace

std::span<const Handler> quantize_handlers() { return quantize_table; }

// The range includes 0, so that 0 is exact. A tensor of zeros has an empty range, for which any
// scale is right.
DynamicBytes dynamically_quantized(NodeImport& node, Var x) {
  const Var zero = node.build.scalar(0, x);
  const auto extreme = [&](std::string_view reduction, std::string_view op) {
    return node.call(op, {node.call(reduction, {x}, {{"keep_axes", false}}), zero});
  };
  const Var high = extreme("reduce_max", "maximum"), low = extreme("reduce_min", "minimum");
  const Var range = (high - low) / 255.0;
  const Var is_flat = node.call("equal", {range, zero});
  const Var scale = node.call("where", {is_flat, node.build.scalar(1, x), range});
  const Var offset = node.call("round", {0.0 - low / scale});
  const Var held = node.call("clip", {offset, zero, node.build.scalar(255, x)});
  const Var zero_point = node.call("cast", {held}, {{"to", to_string(DType::U8)}});
  return {node.call("quantize_linear", {x, scale, zero_point}), scale, zero_point};
}

}  // namespace tenon::onnx
