#include "frontends/onnx/dynamic_quantize.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/plain_ops.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::onnx {
namespace {

void import_dynamic_quantize(NodeImport& node) {
  const DynamicBytes bytes = dynamically_quantized(node.input(0));
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
DynamicBytes dynamically_quantized(Var x) {
  Builder& build = x.builder();
  const Var zero = build.scalar(0, x);
  const auto extreme = [&](std::string_view reduction, std::string_view op) {
    return build.call(op, {build.call(reduction, {x}, {{"keep_axes", false}}), zero});
  };
  const Var high = extreme("reduce_max", "maximum"), low = extreme("reduce_min", "minimum");
  const Var range = (high - low) / 255.0;
  const Var is_flat = build.call("equal", {range, zero});
  const Var scale = build.call("where", {is_flat, build.scalar(1, x), range});
  const Var offset = build.call("round", {0.0 - low / scale});
  const Var held = build.call("clip", {offset, zero, build.scalar(255, x)});
  const Var zero_point = cast_to(held, DType::U8);
  return {build.call("quantize_linear", {x, scale, zero_point}), scale, zero_point};
}

Var integer_product(Var a, Var a_zero_point, Var b, Var b_zero_point) {
  const auto centred = [](Var x, Var zero_point) {
    const Var wide = cast_to(x, DType::I32);
    return zero_point.is_valid() ? wide - cast_to(zero_point, DType::I32) : wide;
  };
  const Var product =
      a.builder().call("matmul", {centred(a, a_zero_point), centred(b, b_zero_point)});
  return cast_to(product, DType::F32);
}

Var dynamic_product(Var x, const QuantizedWeights& weights) {
  const DynamicBytes a = dynamically_quantized(x);
  return integer_product(a.values, a.zero_point, weights.values, weights.zero_point) *
         (a.scale * weights.scale);
}

}  // namespace tenon::frontends::onnx
