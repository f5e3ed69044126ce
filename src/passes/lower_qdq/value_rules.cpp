#include "passes/lower_qdq/parameters.h"
#include "passes/lower_qdq/rules.h"

#include <algorithm>

namespace tenon::passes::qdq {

using namespace rewrite;

namespace {

bool is_byte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }

bool has_dtype(const Match& match, ValueId value, DType dtype) {
  const TensorType* type = match.type(value);
  return type && type->dtype == dtype;
}

// Removes quantization of a value that was dequantized with the same parameters: the product with
// the scale divided by the scale is off by far less than half a step.
ValueId undone(const Match& match) {
  const Graph& graph = match.graph();
  const auto inner = parameters_of(graph, match.node("d")),
             outer = parameters_of(graph, match.root_node());
  const TensorType* x = match.type("x");
  if (!x || !is_byte(x->dtype) || !inner || !outer || !(*inner == *outer)) return {};
  if (!has_dtype(match, match.value("d"), DType::F32)) return {};
  if (!std::ranges::all_of(inner->scales,
                           [](float scale) { return scale > 1e-30F && scale < 1e30F; }))
    return {};
  return match.value("x");
}

// Kernels multiply u8 by i8, so that values between products are made unsigned.
ValueId unsigned_pair(const Match& match) {
  const Graph& graph = match.graph();
  const ValueId narrow = match.value("q");
  if (!has_dtype(match, narrow, DType::I8) || graph.is_output(narrow)) return {};
  const auto inner = parameters_of(graph, match.node("q")),
             outer = parameters_of(graph, match.root_node());
  if (!inner || !outer || !(*inner == *outer) || !inner->is_per_tensor()) return {};
  const bool is_only_dequantized = std::ranges::all_of(graph.readers(narrow), [&](NodeId reader) {
    return graph.node(reader).op == match.root_node().op;
  });
  if (!is_only_dequantized) return {};
  Attributes of_q = match.node("q").attrs, of_root = match.root_node().attrs;
  of_q.erase("to");
  const ValueId zero = match.make_scalar(static_cast<double>(inner->zero_point() + 128), DType::U8);
  const ValueId made =
      match.make("quantize_linear", {match.value("v"), match.value("t"), zero}, std::move(of_q));
  match.succeed(narrow, made);
  return match.make("dequantize_linear", {made, match.value("s"), zero}, std::move(of_root));
}

// Transposes weights at compile time; the product rules require constants.
Tensor transposed(const Tensor& bytes, const Dims& perm) {
  const Shape& from = bytes.shape();
  Shape to;
  std::vector<std::int64_t> strides(from.size(), 1), step;
  for (std::size_t axis = from.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * from[axis];
  for (const Dim& axis : perm) {
    to.push_back(from[static_cast<std::size_t>(axis.constant())]);
    step.push_back(strides[static_cast<std::size_t>(axis.constant())]);
  }
  Tensor made(bytes.dtype(), to);
  const std::span<std::byte> out = made.mutable_bytes();
  std::vector<std::int64_t> at(to.size(), 0);
  std::int64_t source = 0;
  for (std::byte& byte : out) {
    byte = bytes.bytes()[static_cast<std::size_t>(source)];
    for (std::size_t axis = to.size(); axis-- > 0;) {
      source += step[axis];
      if (++at[axis] < to[axis]) break;
      source -= step[axis] * to[axis];
      at[axis] = 0;
    }
  }
  return made;
}

// Applies an op that moves elements or takes their maximum to the quantized bytes.
ValueId moved(const Match& match) {
  const Node root = match.root_node();  // a copy, because adding nodes moves it
  const Node dequantize = match.node("d");
  const TensorType* x = match.type("x");
  if (!x || !is_byte(x->dtype) || !has_dtype(match, match.value("d"), DType::F32)) return {};
  if (std::ranges::count_if(root.results, [](ValueId result) { return bool(result); }) != 1)
    return {};
  auto parameters = parameters_of(match.graph(), dequantize);
  if (!parameters ||
      !std::ranges::all_of(parameters->scales, [](float scale) { return scale > 0; }))
    return {};
  Attributes attrs = dequantize.attrs;
  if (!parameters->is_per_tensor()) {
    const AttrValue* perm = root.attrs.find("perm");
    if (root.op->name != "transpose" || !perm) return {};
    const Dims& order = std::get<Dims>(*perm);
    const auto place = std::ranges::find(order, Dim(parameters->axis));
    if (place == order.end()) return {};
    attrs.set("axis", Dim(place - order.begin()));
  }
  std::vector<ValueId> operands = root.operands;
  operands.front() = match.value("x");
  const Constant* constant = match.graph().constant_of(match.value("x"));
  const AttrValue* perm = root.attrs.find("perm");
  const ValueId made = constant && root.op->name == "transpose" && perm
                           ? match.make_constant(Constant(
                                 transposed(constant->materialise(), std::get<Dims>(*perm))))
                           : match.make(root.op->name, std::move(operands), root.attrs);
  std::vector<ValueId> again = dequantize.operands;
  again.front() = made;
  return match.make("dequantize_linear", std::move(again), std::move(attrs));
}

ValueId joined(const Match& match) {
  const Graph& graph = match.graph();
  std::vector<ValueId> narrow;
  std::optional<Parameters> all;
  Node first;
  for (const ValueId operand : match.values("xs")) {
    const NodeId producer = operand ? graph.value(operand).producer : NodeId{};
    if (!producer || graph.node(producer).op->name != "dequantize_linear") return {};
    const Node& node = graph.node(producer);
    const auto parameters = parameters_of(graph, node);
    const TensorType* x = match.type(node.operands.front());
    if (!parameters || !parameters->is_per_tensor() || !x || !is_byte(x->dtype)) return {};
    if (!has_dtype(match, operand, DType::F32)) return {};
    if (!narrow.empty() && (!(*parameters == *all) || !has_dtype(match, narrow.front(), x->dtype)))
      return {};
    if (narrow.empty()) first = node;
    all = parameters;
    narrow.push_back(node.operands.front());
  }
  if (narrow.empty()) return {};
  first.operands.front() = match.make("concat", std::move(narrow), match.root_node().attrs);
  return match.make("dequantize_linear", std::move(first.operands), std::move(first.attrs));
}

}  // namespace

std::vector<Rule> value_rules() {
  return {
      {"quantize_linear(d: dequantize_linear(x, s, z?) {..}, t, y?) {..}", undone},
      {"dequantize_linear(q: quantize_linear(v, t, y?) {..}, s, z?) {..}", unsigned_pair},
      {"max_pool/transpose/reshape/squeeze/unsqueeze/identity/slice(d: dequantize_linear(x, s, z?) "
       "{..}) {..}",
       moved},
      {"concat(...xs) {..}", joined},
  };
}

}  // namespace tenon::passes::qdq
