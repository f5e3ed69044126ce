#include "passes/lower_qdq/parameters.h"
#include "passes/lower_qdq/rules.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::qdq {

using namespace rewrite;

namespace {

// The left operand of a product as u8, with its zero point.
struct Left {
  ValueId bytes;
  /// absent if only known at run time
  std::optional<std::int64_t> zero;
  /// the zero point as i32 in a shape that broadcasts, if only known at run time
  ValueId zero_value;
};

ValueId without_sign(const Match& match, ValueId bytes) {
  Attributes to;
  to.set("to", DType::U8);
  const ValueId wrapped = match.make("cast", {bytes}, std::move(to));
  return match.make("add", {wrapped, match.make_scalar(128, DType::U8)});
}

Left with_zero(const Match& match, ValueId bytes, std::int64_t zero) {
  const TensorType* type = match.type(bytes);
  if (type->dtype == DType::I8) return {without_sign(match, bytes), zero + 128, {}};
  return {bytes, zero, {}};
}

// Returns whether a window may reach into the padding.
bool may_pad(const Attributes& attrs) {
  const AttrValue* pads = attrs.find("pads");
  if (attrs.find("auto_pad")) return true;
  return pads &&
         !std::ranges::all_of(std::get<Dims>(*pads), [](const Dim& pad) { return pad == Dim(0); });
}

Dims channels_of(std::int64_t count, std::size_t rank) {
  Dims dims(rank - 1, 1);
  dims.front() = Dim(count);
  return dims;
}

// Returns the zero-point correction of the sums plus the bias.
std::vector<std::int64_t> correction(const CentredWeights& weights, std::int64_t zero,
                                     const std::optional<Tensor>& bias) {
  std::vector<std::int64_t> added(weights.sums.size());
  for (std::size_t k = 0; k < added.size(); ++k) {
    added[k] = (bias ? bias->integer_at(static_cast<std::int64_t>(k)) : 0) - zero * weights.sums[k];
  }
  return added;
}

bool is_zero(const std::vector<std::int64_t>& numbers) {
  return std::ranges::all_of(numbers, [](std::int64_t number) { return number == 0; });
}

struct IntegerSum {
  /// i32; invalid if a reason was given
  ValueId value;
};

// Builds the integer convolution in i32 with its correction.
ValueId convolution(const Match& match, const Left& left, const CentredWeights& weights,
                    const std::optional<Tensor>& bias) {
  Attributes attrs = match.root_node().attrs;
  attrs.set("out_dtype", DType::I32);
  const std::size_t rank = match.type(left.bytes)->rank();
  if (!left.zero && may_pad(attrs)) {
    match.refuse("only the run knows what stands for zero at the edges");
    return {};
  }
  const std::vector<std::int64_t> added = correction(weights, left.zero.value_or(0), bias);
  if (!sums_fit(weights, added)) {
    match.refuse("K is too large for 32-bit accumulators");
    return {};
  }
  if (left.zero.value_or(0) != 0 && may_pad(attrs)) attrs.set("pad_value", Dim(*left.zero));
  const ValueId values = match.make_constant(Constant(weights.values));
  match.succeed(match.value("w"), values);
  std::vector<ValueId> operands{left.bytes, values};
  if (!is_zero(added)) operands.push_back(match.make_constant(Constant(tensor_of(added))));
  const ValueId sums = match.make("conv", std::move(operands), std::move(attrs));
  if (left.zero) return sums;
  const auto count = static_cast<std::int64_t>(weights.sums.size());
  const Tensor column = tensor_of(weights.sums).reshaped({constants(channels_of(count, rank))});
  return match.make(
      "sub", {sums, match.make("mul", {left.zero_value, match.make_constant(Constant(column))})});
}

ValueId matrix_product(const Match& match, const Left& left, const CentredWeights& weights) {
  const std::vector<std::int64_t> added = correction(weights, left.zero.value_or(0), std::nullopt);
  if (!sums_fit(weights, added)) {
    match.refuse("K is too large for 32-bit accumulators");
    return {};
  }
  const ValueId values = match.make_constant(Constant(weights.values));
  match.succeed(match.value("w"), values);
  const ValueId sums = match.make("matmul", {left.bytes, values}, {{"out_dtype", DType::I32}});
  if (!left.zero) {
    const ValueId column = match.make_constant(Constant(tensor_of(weights.sums)));
    return match.make("sub", {sums, match.make("mul", {left.zero_value, column})});
  }
  return is_zero(added)
             ? sums
             : match.make("add", {sums, match.make_constant(Constant(tensor_of(added)))});
}

// Operands of f32 that were dequantized from bytes: parameters of both, and weights.
struct Dequantized {
  Parameters left;
  /// scales of the sums
  std::vector<float> scales;
  CentredWeights weights;
};
std::optional<Dequantized> dequantized(const Match& match, std::size_t outputs) {
  const Graph& graph = match.graph();
  const TensorType *x = match.type("x"), *w = match.type("w");
  const Constant* constant = graph.constant_of(match.value("w"));
  if (!x || !w || (x->dtype != DType::U8 && x->dtype != DType::I8) || !x->layout.is_empty() ||
      !w->layout.is_empty()) {
    return std::nullopt;
  }
  if (!constant) {
    match.refuse("both operands come from the run");
    return std::nullopt;
  }
  const auto left = parameters_of(graph, match.node("p")),
             right = parameters_of(graph, match.node("q"));
  if (!left || !right || !match.root_type().is_tensor() ||
      match.root_type().tensor().dtype != DType::F32)
    return std::nullopt;
  if (!left->is_per_tensor()) {
    match.refuse("the image has a scale for each position along an axis");
    return std::nullopt;
  }
  const bool is_by_output = right->scales.size() == 1 && right->zero_points.size() == 1;
  if (!is_by_output && right->axis != static_cast<std::int64_t>(outputs)) {
    match.refuse("weight scales are not per output channel");
    return std::nullopt;
  }
  auto weights = centred_weights(constant->materialise(), right->zero_points, outputs);
  if (!weights) {
    match.refuse("a weight minus its zero point exceeds eight bits");
    return std::nullopt;
  }
  Dequantized made{*left, {}, std::move(*weights)};
  for (const float scale : right->scales) made.scales.push_back(left->scales.front() * scale);
  return made;
}

// Returns a bias that is quantized with the scale of the sums, as quantizers write it.
std::optional<Tensor> bias_in_scale(const Graph& graph, ValueId bias,
                                    const std::vector<float>& scales, std::size_t count) {
  const NodeId producer = graph.value(bias).producer;
  if (!producer || graph.node(producer).op->name != "dequantize_linear") return std::nullopt;
  const Node& node = graph.node(producer);
  const Constant* stored = graph.constant_of(node.operands.front());
  const auto parameters = parameters_of(graph, node);
  if (!stored || stored->dtype() != DType::I32 ||
      stored->size() != static_cast<std::int64_t>(count))
    return std::nullopt;
  if (!parameters || parameters->zero_points.size() != 1 || parameters->zero_point() != 0)
    return std::nullopt;
  for (std::size_t k = 0; k < count; ++k) {
    const float wanted = scales[scales.size() == 1 ? 0 : k];
    const float has = parameters->scales[parameters->scales.size() == 1 ? 0 : k];
    if (!(std::abs(has - wanted) <= 1e-6F * wanted)) return std::nullopt;
  }
  return stored->materialise();
}

ValueId integer_convolution(const Match& match) {
  auto given = dequantized(match, 0);
  if (!given) return {};
  const ValueId b = match.has("b") ? match.value("b") : ValueId{};
  const std::size_t count = given->weights.sums.size();
  const auto bias = b ? bias_in_scale(match.graph(), b, given->scales, count) : std::nullopt;
  const std::size_t rank = match.type("x")->rank();
  const Left left = with_zero(match, match.value("x"), given->left.zero_point());
  const ValueId sums = convolution(match, left, given->weights, bias);
  if (!sums) return {};
  const ValueId scale = match.make_constant(Constant(tensor_of(given->scales)));
  const ValueId real = match.make("dequantize_linear", {sums, scale});
  if (!b || bias) return real;
  return match.make(
      "add", {real, match.make_reshape(b, channels_of(static_cast<std::int64_t>(count), rank))});
}

ValueId integer_gemm(const Match& match) {
  const TensorType* w = match.type("w");
  if (!w || w->rank() != 2 || !match.type("x") || match.type("x")->rank() < 1) return {};
  const auto given = dequantized(match, 1);
  if (!given) return {};
  const ValueId sums = matrix_product(
      match, with_zero(match, match.value("x"), given->left.zero_point()), given->weights);
  if (!sums) return {};
  const ValueId scale = match.make_constant(Constant(tensor_of(given->scales)));
  return match.make("dequantize_linear", {sums, scale}, {{"axis", Dim(-1)}});
}

// Operands of i32 that are bytes minus a zero point.
struct Centred {
  /// zero: i32, or invalid
  ValueId bytes, zero;
};
std::optional<Centred> centred(const Match& match, ValueId value) {
  const Graph& graph = match.graph();
  const auto bytes_of = [&](ValueId wide) -> ValueId {
    const TensorType* type = match.type(wide);
    if (type && (type->dtype == DType::U8 || type->dtype == DType::I8)) return wide;
    const NodeId producer = graph.value(wide).producer;
    if (!producer || graph.node(producer).op->name != "cast" || !type || type->dtype != DType::I32)
      return {};
    const ValueId narrow = graph.node(producer).operands.front();
    const TensorType* from = match.type(narrow);
    return from && (from->dtype == DType::U8 || from->dtype == DType::I8) ? narrow : ValueId{};
  };
  if (const ValueId bytes = bytes_of(value)) return Centred{bytes, {}};
  const NodeId producer = graph.value(value).producer;
  if (!producer || graph.node(producer).op->name != "sub") return std::nullopt;
  const Node& node = graph.node(producer);
  const ValueId bytes = bytes_of(node.operands[0]);
  if (!bytes) return std::nullopt;
  return Centred{bytes, node.operands[1]};
}

// Operands as they are to be multiplied; absent if they already are so, or cannot be.
struct Integers {
  Left left;
  CentredWeights weights;
};
std::optional<Integers> integer_operands(const Match& match, std::size_t outputs) {
  const Graph& graph = match.graph();
  const Type& result = match.root_type();
  if (!result.is_tensor() || result.tensor().dtype != DType::I32) return std::nullopt;
  const auto left = centred(match, match.value("x")), right = centred(match, match.value("w"));
  if (!left || !right) return std::nullopt;
  const TensorType *x = match.type(left->bytes), *w = match.type(right->bytes);
  const Constant* constant = graph.constant_of(right->bytes);
  const bool is_done = left->bytes == match.value("x") && right->bytes == match.value("w") &&
                       x->dtype == DType::U8 && w->dtype == DType::I8;
  if (is_done || !constant || !x->layout.is_empty() || outputs >= w->rank()) return std::nullopt;
  std::vector<std::int64_t> zero_points{0};
  if (right->zero) {
    const auto zeros = integers_of(graph, right->zero);
    if (!zeros) return std::nullopt;
    zero_points = zeros->integers();
    // One per output channel, along no other axis.
    const std::size_t behind = w->rank() - 1 - outputs;
    const Shape& shape = zeros->shape();
    if (zero_points.size() > 1 &&
        (shape.size() <= behind || shape[shape.size() - 1 - behind] != zeros->size())) {
      return std::nullopt;
    }
  }
  auto weights = centred_weights(constant->materialise(), zero_points, outputs);
  if (!weights) {
    match.refuse("a weight minus its zero point exceeds eight bits");
    return std::nullopt;
  }
  Integers made{{}, std::move(*weights)};
  const auto zero = left->zero ? integers_of(graph, left->zero) : std::nullopt;
  if (!left->zero || (zero && zero->size() == 1)) {
    made.left = with_zero(match, left->bytes, zero ? zero->integer_at(0) : 0);
    return made;
  }
  const TensorType* zero_type = match.type(left->zero);
  const bool is_one = zero_type && (zero_type->rank() == 0 ||
                                    (zero_type->rank() == 1 && zero_type->dims[0] == Dim(1)));
  // A matrix may have one per row; an image only one per tensor.
  const bool is_by_row =
      zero_type && zero_type->rank() == x->rank() && zero_type->dims.back() == Dim(1);
  if (!is_one && !(is_by_row && match.root_node().op->name == "matmul")) return std::nullopt;
  made.left = {left->bytes, std::nullopt, left->zero};
  if (x->dtype == DType::I8) {
    made.left.bytes = without_sign(match, left->bytes);
    made.left.zero_value = match.make("add", {left->zero, match.make_scalar(128, DType::I32)});
  }
  return made;
}

ValueId centred_convolution(const Match& match) {
  const AttrValue* pad_value = match.root_node().attrs.find("pad_value");
  if (pad_value) return {};
  const auto given = integer_operands(match, 0);
  if (!given) return {};
  const auto bias = match.has("b") ? integers_of(match.graph(), match.value("b")) : std::nullopt;
  if (match.has("b") && !bias) return {};
  return convolution(match, given->left, given->weights, bias);
}

ValueId centred_gemm(const Match& match) {
  const TensorType* w = match.type("w");
  if (!w || w->rank() != 2) return {};
  const auto given = integer_operands(match, 1);
  return given ? matrix_product(match, given->left, given->weights) : ValueId{};
}

// A bias after a matrix product.
ValueId added_before_scaling(const Match& match) {
  const TensorType *sums = match.type("a"), *bias = match.type("b");
  if (!sums || !bias || sums->dtype != DType::I32 || bias->dtype != DType::I32 || bias->rank() != 1)
    return {};
  const auto parameters = parameters_of(match.graph(), match.node("d"));
  if (!parameters || sums->rank() == 0 || !bias->dims[0].is_constant()) return {};
  if (parameters->scales.size() > 1 &&
      parameters->axis + 1 != static_cast<std::int64_t>(sums->rank()))
    return {};
  if (!match.is_read_once(match.value("d")) || !(sums->dims.back() == bias->dims[0])) return {};
  const auto count = static_cast<std::size_t>(bias->dims[0].constant());
  if (!bias_in_scale(match.graph(), match.value("e"), parameters->scales, count)) return {};
  std::vector<ValueId> operands = match.node("d").operands;
  Attributes attrs = match.node("d").attrs;
  operands.front() = match.make("add", {match.value("a"), match.value("b")});
  return match.make("dequantize_linear", std::move(operands), std::move(attrs));
}

}  // namespace

std::vector<Rule> contraction_rules() {
  const std::string operands =
      "p: dequantize_linear(x, s, z?) {..}, q: dequantize_linear(w, t, y?) {..}";
  return {
      {"conv(" + operands + ", b?) {..}", integer_convolution},
      {"matmul(" + operands + ") {..}", integer_gemm},
      {"conv(x, w, b?) {out_dtype = o, ..}", centred_convolution},
      {"matmul(x, w) {out_dtype = o, ..}", centred_gemm},
      {"add(d: dequantize_linear(a, s, z?) {..}, e: dequantize_linear(b, t, y?) {..})",
       added_before_scaling},
  };
}

}  // namespace tenon::passes::qdq
