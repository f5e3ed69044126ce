#include "base/error.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/plain_ops.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <array>

namespace tenon::frontends::onnx {
namespace {

// Selu's constants had five digits in its first version.
void import_selu(NodeImport& node) {
  if (node.opset() >= 6) return import_plain(node);
  node.output(
      node.call("selu", {node.input(0)},
                {{"alpha", node.real("alpha", 1.6732)}, {"gamma", node.real("gamma", 1.0507)}}));
}

// Appends axes of extent 1 to the second input, so that its first axis aligns with `axis` of the
// other.
Var aligned_at(NodeImport& node, Var value, Var other, std::int64_t axis) {
  const std::optional<std::size_t> rank = node.rank(value), other_rank = node.rank(other);
  if (!rank || !other_rank) node.unsupported("its inputs' ranks are not known");
  const auto signed_rank = static_cast<std::int64_t>(*other_rank);
  const std::int64_t after =
      signed_rank - (axis < 0 ? axis + signed_rank : axis) - static_cast<std::int64_t>(*rank);
  if (after <= 0) return value;
  Dims dims = node.type(value).tensor().dims;
  dims.resize(dims.size() + static_cast<std::size_t>(after), Dim(1));
  return reshape_to(value, dims);
}

// Before opset 7 an attribute aligned the second input with axes of the first.
void import_binary(NodeImport& node) {
  const Var a = node.input(0);
  Var b = node.input(1);
  if (node.opset() < 7 && node.integer("broadcast", 0) != 0 && node.has_attr("axis")) {
    b = aligned_at(node, b, a, node.integer("axis"));
  }
  node.output(node.call(find_plain(node.op_type())->op, {a, b}));
}

// Before opset 7 a slope of rank 1 had one element for each channel.
void import_prelu(NodeImport& node) {
  const Var x = node.input(0);
  Var slope = node.input(1);
  if (node.opset() < 7 && node.rank(slope) == std::size_t{1} && node.rank(x).value_or(0) > 1) {
    slope = aligned_at(node, slope, x, 1);
  }
  node.output(node.call("prelu", {x, slope}));
}

Var folded(NodeImport& node, std::string_view op) {
  Var total = node.input(0);
  for (std::size_t k = 1; k < node.input_count(); ++k)
    total = node.call(op, {total, node.input(k)});
  return node.input_count() == 1 ? node.call("identity", {total}) : total;
}

void import_max(NodeImport& node) { node.output(folded(node, "maximum")); }
void import_min(NodeImport& node) { node.output(folded(node, "minimum")); }
void import_sum(NodeImport& node) { node.output(folded(node, "add")); }
void import_mean(NodeImport& node) {
  node.output(folded(node, "add") / static_cast<double>(node.input_count()));
}

void import_mod(NodeImport& node) {
  node.output(node.call("mod", {node.input(0), node.input(1)},
                        {{"sign", node.integer("fmod", 0) != 0 ? "dividend" : "divisor"}}));
}

void import_bit_shift(NodeImport& node) {
  const bool is_left = node.text("direction") == "LEFT";
  node.output(node.call(is_left ? "shift_left" : "shift_right", {node.input(0), node.input(1)}));
}

// The bounds were attributes before opset 11 and are inputs since.
void import_clip(NodeImport& node) {
  const Var x = node.input(0);
  std::array<Var, 2> bounds;
  for (std::size_t k = 0; k < 2; ++k) {
    const char* name = k == 0 ? "min" : "max";
    if (node.opset() >= 11) {
      bounds[k] = node.input_or_none(k + 1);
    } else if (node.has_attr(name)) {
      bounds[k] = node.build.scalar(node.real(name), x);
    }
  }
  node.output(node.call("clip", {x, bounds[0], bounds[1]}));
}

void import_swiglu(NodeImport& node) {
  const Var gate = node.call("swish", {node.input(0)}, {{"alpha", node.real("alpha", 1)}});
  node.output(gate * node.input(1));
}

Var gelu_of(NodeImport& node) {
  return node.call("gelu", {node.input(0)}, {{"approximate", node.text("approximate", "none")}});
}

void import_geglu(NodeImport& node) { node.output(gelu_of(node) * node.input(1)); }

// Sequences and optionals pass through without a copy.
void import_identity(NodeImport& node) {
  const Var x = node.input(0);
  const Type::Kind kind = node.type(x).kind();
  const bool is_container = kind == Type::Kind::Sequence || kind == Type::Kind::Optional;
  node.output(is_container ? x : node.call("identity", {x}));
}

bool is_text(NodeImport& node, Var x) {
  const Type& type = node.type(x);
  return type.is_tensor() && type.tensor().dtype == DType::String;
}

void import_conversion(NodeImport& node, DType to) {
  const Var x = node.input(0);
  if (is_text(node, x) || to == DType::String) {
    node.output(node.call("cast_text", {x}, {{"to", to_string(to)}}));
  } else {
    node.output(node.call("cast", {x},
                          {{"to", to_string(to)},
                           {"saturate", node.integer("saturate", 1) != 0},
                           {"rounding", node.text("round_mode", "up")}}));
  }
}

// Before opset 6 the target was given by the name of its enumerator.
DType named_element(NodeImport& node) {
  static constexpr std::pair<std::string_view, DType> names[] = {
      {"FLOAT", DType::F32},   {"UINT8", DType::U8},      {"INT8", DType::I8},
      {"UINT16", DType::U16},  {"INT16", DType::I16},     {"INT32", DType::I32},
      {"INT64", DType::I64},   {"STRING", DType::String}, {"BOOL", DType::Bool},
      {"FLOAT16", DType::F16}, {"DOUBLE", DType::F64},    {"UINT32", DType::U32},
      {"UINT64", DType::U64},  {"COMPLEX64", DType::C64}, {"COMPLEX128", DType::C128},
  };
  std::string word = node.text("to");
  std::ranges::transform(word, word.begin(),
                         [](unsigned char letter) { return std::toupper(letter); });
  const auto found = std::ranges::find(names, word, [](const auto& name) { return name.first; });
  if (found == std::end(names)) node.unsupported(concat("no element type is called '", word, "'"));
  return found->second;
}

void import_cast(NodeImport& node) {
  import_conversion(node, node.opset() < 6 ? named_element(node) : node.element("to", DType::F32));
}
void import_cast_like(NodeImport& node) { import_conversion(node, node.dtype(node.input(1))); }

bool is_constant_zero(const NodeImport& node, std::size_t input) {
  const std::optional<Tensor> value = node.constant_input(input);
  return value && value->size() == 1 && value->real_at(0) == 0;
}

// In inference, and for a ratio of 0, the input passes through and the mask is all true.
void import_dropout(NodeImport& node) {
  const Var x = node.input(0);
  if (node.opset() >= 12) {
    for (const std::size_t input : {1, 2}) node.ignore_input(input);
  }
  const bool may_train = node.opset() >= 12 && node.has_input(2) && !is_constant_zero(node, 2);
  if (may_train && !is_constant_zero(node, 1)) {
    const std::vector<Var> results =
        node.build.call_all("dropout", {x, node.input_or_none(1), node.input(2)},
                            std::vector<Attr>{{"seed", node.integer("seed", 0)}}, {"", ""});
    node.output(0, results[0]);
    if (node.wants_output(1)) node.output(1, results[1]);
    return;
  }
  node.output(0, node.call("identity", {x}));
  if (!node.wants_output(1)) return;
  const TensorType type = node.type(x).tensor();
  const DType mask = node.opset() < 10 ? type.dtype : DType::Bool;
  node.output(1, expand_to(node.build.constant(Tensor::scalar(mask, 1)), type.dims));
}

// Operators of the first models that were removed from later opsets.
void import_affine(NodeImport& node) {
  node.output(node.input(0) * node.real("alpha", 1) + node.real("beta", 0));
}
void import_scale(NodeImport& node) { node.output(node.input(0) * node.real("scale", 1)); }
void import_scaled_tanh(NodeImport& node) {
  node.output(node.call("tanh", {node.input(0) * node.real("beta", 1)}) * node.real("alpha", 1));
}
void import_parametric_softplus(NodeImport& node) {
  node.output(node.call("softplus", {node.input(0) * node.real("beta", 1)}) *
              node.real("alpha", 1));
}
void import_image_scaler(NodeImport& node) {
  const Var x = node.input(0), scaled = x * node.real("scale", 1);
  const std::vector<double> bias = node.reals("bias");
  if (bias.empty()) return node.output(scaled);
  const auto channels = static_cast<std::int64_t>(bias.size());
  const Tensor values = Tensor::of(node.dtype(x), {channels, 1, 1}, bias);
  node.output(scaled + node.build.constant(values));
}

// Fused activations of ONNX Runtime's optimiser.
void import_bias_gelu(NodeImport& node) {
  const bool is_fast = node.op_type() == "FastGelu";
  const Var x = node.has_input(1) ? node.input(0) + node.input(1) : node.input(0);
  node.output(node.call("gelu", {x}, {{"approximate", is_fast ? "tanh" : "none"}}));
}
void import_quick_gelu(NodeImport& node) {
  node.output(node.call("swish", {node.input(0)}, {{"alpha", node.real("alpha", 1.702)}}));
}

std::vector<Handler> make_handlers() {
  std::vector<Handler> all = {
      {"Affine", import_affine},
      {"BiasGelu", import_bias_gelu, "com.microsoft"},
      {"BitShift", import_bit_shift},
      {"Cast", import_cast},
      {"CastLike", import_cast_like},
      {"Clip", import_clip},
      {"Dropout", import_dropout},
      {"FastGelu", import_bias_gelu, "com.microsoft"},
      {"GeGLU", import_geglu},
      {"Gelu", import_plain, "com.microsoft"},
      {"Identity", import_identity},
      {"ImageScaler", import_image_scaler},
      {"Max", import_max},
      {"Mean", import_mean},
      {"Min", import_min},
      {"Mod", import_mod},
      {"PRelu", import_prelu},
      {"ParametricSoftplus", import_parametric_softplus},
      {"QuickGelu", import_quick_gelu, "com.microsoft"},
      {"Scale", import_scale},
      {"ScaledTanh", import_scaled_tanh},
      {"Selu", import_selu},
      {"Sum", import_sum},
      {"SwiGLU", import_swiglu},
  };
  for (const char* name :
       {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
        "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Pow", "Sub", "Xor"}) {
    all.push_back({name, import_binary});
  }
  return all;
}

}  // namespace

std::span<const Handler> elementwise_handlers() {
  static const std::vector<Handler> handlers = make_handlers();
  return handlers;
}

}  // namespace tenon::frontends::onnx
