#include "passes/integer_products/rules.h"

namespace tenon::integers {
namespace {

using rewrite::Match;
using rewrite::Rule;

// Smaller ones become floats when constants are folded, and then tiles are faster.
constexpr std::int64_t kLeastElements = std::int64_t{1} << 18;

// The same numbers in a byte each: kernels do not have to widen four bits.
std::optional<Constant> in_bytes(const Constant& constant) {
  switch (constant.dtype()) {
    case DType::I8:
    case DType::U8:
      return constant;
    case DType::I4:
      return Constant(constant.materialise().converted(DType::I8));
    case DType::U4:
      return Constant(constant.materialise().converted(DType::U8));
    default:
      return std::nullopt;
  }
}

// One row times narrow weights: every weight is read once, so it is widened where it is multiplied,
// and only narrow numbers come from memory. With more rows it pays to widen them once.
ValueId row_times_narrow_weights(const Match& match) {
  const Graph& graph = match.graph();
  const TensorType *x = match.type("x"), *w = match.type("w");
  const Type& result = match.root_type();
  if (!x || !w || w->rank() != 2 || x->rank() == 0 || x->dtype != DType::F32 ||
      !result.is_tensor() || result.tensor().dtype != DType::F32 || !x->layout.is_empty() ||
      !w->layout.is_empty())
    return {};
  const NodeId maker = graph.value(match.value("x")).producer;
  if (maker && graph.op_name(maker) == "dequantize_linear") return {};
  const Constant* weights = graph.constant_of(match.value("w"));
  if (weights == nullptr || weights->size() < kLeastElements) return {};
  const Dim& terms = w->dims[0];
  if (!(product(x->dims) == terms) || !all_constant(result.tensor().dims)) {
    match.refuse("several rows share its weights, which are widened once for all of them");
    return {};
  }
  const std::optional<Constant> bytes = in_bytes(*weights);
  if (!bytes) return {};
  std::vector<ValueId> operands = match.node("q").operands;
  const Attributes attrs = match.node("q").attrs;
  const bool is_same = bytes->dtype() == weights->dtype();
  if (operands.size() > 2 && operands[2] && !is_same) {
    const Constant* zero = graph.constant_of(operands[2]);
    if (zero == nullptr) return {};
    operands[2] = match.make_constant(*in_bytes(*zero));
  }
  const Dims shape = result.tensor().dims;
  const Dims column{terms, Dim(1)};
  if (!is_same) operands[0] = match.make_constant(*bytes);
  const ValueId real = match.make("dequantize_linear", operands, attrs);
  const ValueId products = match.make("mul", {match.make_reshape(match.value("x"), column), real});
  const ValueId sums =
      match.make("reduce_sum", {products}, {{"axes", Dims{Dim(0)}}, {"keep_axes", false}});
  return match.make_reshape(sums, shape);
}

}  // namespace

std::vector<Rule> row_rules() {
  return {{"matmul(x, q: dequantize_linear(w, t, y?) {..})", row_times_narrow_weights}};
}

}  // namespace tenon::integers
