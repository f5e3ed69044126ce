#include "base/error.h"
#include "documents/relay/import_call.h"
#include "documents/relay/window.h"
#include "ops/families/matrices.h"

namespace tenon::documents::relay {
namespace {

// Relay's quantized (QNN) dialect: each operator receives scales and zero points of its operands
// and of its result.
constexpr WeightRole kScaleOperand{WeightRole::Kind::Scale, 0};

DType element_of(const CallImport& call, DType otherwise) {
  return call.dtype("out_dtype").value_or(otherwise);
}

// Returns the axis of per-channel scales; scalar scales lack one.
std::vector<Attr> along(const CallImport& call, Var scale) {
  if (call.type(scale).rank() == 0) return {};
  return {{"axis", call.integer("axis")}};
}

// Broadcasts one zero point to per-channel scales.
Var zero_like(const CallImport& call, Var zero, Var scale, DType dtype) {
  zero = call.cast(zero, dtype);
  const Dims dims = call.type(scale).dims;
  if (call.type(zero).rank() == dims.size()) return zero;
  Attributes attrs;
  attrs.set("shape", dims);
  return call.build().call_all("expand", {zero}, std::move(attrs), {""}).front();
}

Var dequantized(const CallImport& call, Var x, Var scale, Var zero, std::vector<Attr> attrs = {}) {
  const Var like = zero_like(call, zero, scale, call.type(x).dtype);
  return call.call("dequantize_linear", {x, scale, like}, attrs);
}
Var quantized(const CallImport& call, Var x, Var scale, Var zero, DType to,
              const std::vector<Attr>& attrs = {}) {
  return call.call("quantize_linear", {x, scale, zero_like(call, zero, scale, to)}, attrs);
}

ImportedValue quantize(const CallImport& call) {
  const Var scale = call.value(1, kScaleOperand);
  return quantized(call, call.value(0), scale, call.value(2), element_of(call, DType::I8),
                   along(call, scale));
}

ImportedValue dequantize(const CallImport& call) {
  const Var scale = call.value(1, kScaleOperand);
  return dequantized(call, call.value(0), scale, call.value(2), along(call, scale));
}

ImportedValue requantize(const CallImport& call) {
  const Var scale = call.value(1, kScaleOperand), to = call.value(3, kScaleOperand);
  const Var real = dequantized(call, call.value(0), scale, call.value(2), along(call, scale));
  return quantized(call, real, to, call.value(4), element_of(call, DType::I8));
}

// Subtracts the zero point of a factor.
Var shifted(const CallImport& call, Var x, Var zero) {
  return call.call("sub", {call.cast(x, DType::I32), call.cast(zero, DType::I32)});
}

// Reshapes per-channel zero points to the axis of the weight's outputs.
Var weight_zero(const CallImport& call, const std::string& layout) {
  const Var zero = call.value(3);
  const std::size_t outputs = layout.find('O');
  if (call.type(zero).rank() != 1 || outputs == std::string::npos) return zero;
  Attr::Integers shape(layout.size(), 1);
  shape[outputs] = -1;
  return call.call("reshape", {zero}, {{"shape", shape}});
}

ImportedValue convolve(const CallImport& call) {
  const bool is_transposed = call.op() == "qnn.conv2d_transpose";
  const std::string data = call.text("data_layout"), kernel = call.text("kernel_layout");
  const Var x = call.as_layout(call.value(0), data, "NCHW");
  const Var zero = weight_zero(call, kernel);
  const Var w =
      call.as_layout(call.value(1), is_transposed && kernel == "IOHW" ? "OIHW" : kernel, "OIHW");
  std::vector<Attr> attrs = {{"strides", along_each_axis(call, "strides", 2)},
                             {"dilations", along_each_axis(call, "dilation", 2)},
                             {"pads", pads_around(call, 2)},
                             {"groups", call.integer("groups")}};
  if (is_transposed)
    attrs.emplace_back("output_padding", along_each_axis(call, "output_padding", 2));
  return call.call(is_transposed ? "conv_transpose" : "conv",
                   {shifted(call, x, call.value(2)), shifted(call, w, zero)}, attrs);
}

ImportedValue multiply_matrices(const CallImport& call) {
  const Var x = shifted(call, call.value(0), call.value(2));
  const Var w = shifted(call, call.value(1), call.value(3));
  if (call.type(w).rank() < 2) throw call.error("a weight is a matrix");
  return call.call("matmul", {x, with_last_axes_swapped(call.build(), w)});
}

// x, y, then scale and zero point of x, of y and of the result.
Handler arithmetic(std::string_view op) {
  return [op](const CallImport& call) -> ImportedValue {
    const Var x = call.value(0), y = call.value(1);
    const DType dtype = call.type(x).dtype;
    const Var real =
        call.call(op, {dequantized(call, x, call.value(2, kScaleOperand), call.value(3)),
                       dequantized(call, y, call.value(4, kScaleOperand), call.value(5))});
    return quantized(call, real, call.value(6, kScaleOperand), call.value(7), dtype);
  };
}

// Float computation between dequantize and quantize: x, then scale and zero point of x and of the
// result.
Handler around(std::function<Var(const CallImport&, Var)> compute) {
  return [compute = std::move(compute)](const CallImport& call) -> ImportedValue {
    const Var x = call.value(0);
    const Var real = dequantized(call, x, call.value(1, kScaleOperand), call.value(2));
    return quantized(call, compute(call, real), call.value(3, kScaleOperand), call.value(4),
                     call.type(x).dtype);
  };
}

Var average(const CallImport& call, Var x) {
  return call.call("average_pool", {call.as_layout(x, call.text("layout"), "NCHW")},
                   {{"kernel_shape", along_each_axis(call, "pool_size", 2)},
                    {"strides", along_each_axis(call, "strides", 2)},
                    {"dilations", along_each_axis(call, "dilation", 2)},
                    {"pads", pads_around(call, 2)},
                    {"ceil_mode", call.flag("ceil_mode")},
                    {"count_include_pad", call.flag("count_include_pad")}});
}

ImportedValue concatenate_quantized(const CallImport& call) {
  const std::vector<Var> parts = call.values(0), scales = call.values(1), zeros = call.values(2);
  if (parts.empty() || parts.size() != scales.size() || parts.size() != zeros.size())
    throw call.error("there is not one scale and zero point for each part");
  const DType dtype = call.type(parts[0]).dtype;
  std::vector<Var> reals;
  for (std::size_t k = 0; k < parts.size(); ++k)
    reals.push_back(dequantized(call, parts[k], scales[k], zeros[k]));
  const Var real = call.call("concat", reals, {{"axis", call.integer("axis")}});
  return quantized(call, real, call.value(3, kScaleOperand), call.value(4), dtype);
}

}  // namespace

void add_quantized_handlers(Handlers& handlers) {
  handlers["qnn.quantize"] = quantize;
  handlers["qnn.dequantize"] = dequantize;
  handlers["qnn.requantize"] = requantize;
  handlers["qnn.conv2d"] = convolve;
  handlers["qnn.dense"] = multiply_matrices;
  handlers["qnn.batch_matmul"] = multiply_matrices;
  handlers["qnn.add"] = arithmetic("add");
  handlers["qnn.subtract"] = arithmetic("sub");
  handlers["qnn.mul"] = arithmetic("mul");
  handlers["qnn.concatenate"] = concatenate_quantized;
  handlers["qnn.conv2d_transpose"] = convolve;
  handlers["qnn.avg_pool2d"] = around(average);
  for (const char* op : {"abs", "erf", "exp", "log", "sigmoid", "sqrt", "tanh"}) {
    handlers[concat("qnn.", op)] =
        around([op](const CallImport& call, Var x) { return call.call(op, {x}); });
  }
  handlers["qnn.hardswish"] =
      around([](const CallImport& call, Var x) { return call.call("hard_swish", {x}); });
  handlers["qnn.rsqrt"] = around([](const CallImport& call, Var x) {
    return call.call("reciprocal", {call.call("sqrt", {x})});
  });
  handlers["qnn.leaky_relu"] = around([](const CallImport& call, Var x) {
    return call.call("leaky_relu", {x}, {{"alpha", call.real("alpha")}});
  });
  handlers["qnn.softmax"] = around([](const CallImport& call, Var x) {
    return call.call("softmax", {x}, {{"axis", call.integer("axis")}});
  });
}

}  // namespace tenon::documents::relay
