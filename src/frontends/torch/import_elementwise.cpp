#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

namespace tenon::frontends::torch {
namespace {

// Operators of one operand that have the same meaning in Tenon; computed in the result's type.
void import_unary(NodeImport& n) {
  static const std::unordered_map<std::string_view, std::string_view> names = {
      {"hardswish", "hard_swish"},
      {"silu", "swish"},
      {"sgn", "sign"},
      {"bitwise_not", "bit_not"},
      {"fix", "trunc"}};
  const auto renamed = names.find(n.op);
  const Var x = cast_to(n.first(), n.result_dtype());
  if (n.op == "bitwise_not" && n.result_dtype() == DType::Bool)
    return n.result(n.call("logical_not", {x}));
  n.result(n.call(renamed == names.end() ? n.op : renamed->second, {x}));
}

// Tests give truth values.
void import_test(NodeImport& n) {
  const Var x = n.first();
  if (!is_float(n.dtype(x))) return n.result(expand_to(n.number(0, DType::Bool), n.dims(x)));
  if (n.op == "isnan") return n.result(n.call("is_nan", {x}));
  const Var infinite =
      n.call("is_inf", {x}, {{"positive", n.op != "isneginf"}, {"negative", n.op != "isposinf"}});
  if (n.op != "isfinite") return n.result(infinite);
  n.result(n.call("logical_not", {n.call("logical_or", {infinite, n.call("is_nan", {x})})}));
}

void import_logical_not(NodeImport& n) {
  n.result(n.call("logical_not", {cast_to(n.first(), DType::Bool)}));
}

Var floating(NodeImport& n) { return cast_to(n.first(), n.result_dtype()); }

void import_log1p(NodeImport& n) { n.result(n.call("log", {floating(n) + 1.0})); }
void import_expm1(NodeImport& n) { n.result(n.call("exp", {floating(n)}) - 1.0); }
void import_log2(NodeImport& n) {
  n.result(n.call("log", {floating(n)}) * (1 / std::numbers::ln2));
}
void import_log10(NodeImport& n) {
  n.result(n.call("log", {floating(n)}) * (1 / std::numbers::ln10));
}
void import_exp2(NodeImport& n) { n.result(n.call("exp", {floating(n) * std::numbers::ln2})); }
void import_rsqrt(NodeImport& n) {
  n.result(n.call("reciprocal", {n.call("sqrt", {floating(n)})}));
}
void import_erfc(NodeImport& n) { n.result(1.0 - n.call("erf", {floating(n)})); }
void import_square(NodeImport& n) {
  const Var x = n.first();
  n.result(x * x);
}
void import_log_sigmoid(NodeImport& n) { n.result(-n.call("softplus", {-floating(n)})); }

void import_round(NodeImport& n) {
  const std::int64_t decimals = n.integer("decimals", 0);
  const Var x = n.first();
  if (!is_float(n.dtype(x))) return n.result(x);
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  n.result(decimals == 0 ? n.call("round", {x}) : n.call("round", {x * scale}) / scale);
}

void import_gelu(NodeImport& n) {
  n.result(n.call("gelu", {n.first()}, {{"approximate", word(n.text("approximate", "none"))}}));
}
void import_elu(NodeImport& n) {
  if (n.real("scale", 1) != 1 || n.real("input_scale", 1) != 1) {
    // selu in its decomposed form.
    const Var x = n.first();
    const Var negative = (n.call("exp", {x * n.real("input_scale", 1)}) - 1.0) *
                         (n.real("alpha", 1) * n.real("scale", 1));
    const Var is_positive = n.call("greater", {x, n.number(0, n.dtype(x))});
    return n.result(n.call("where", {is_positive, x * n.real("scale", 1), negative}));
  }
  n.result(n.call("elu", {n.first()}, {{"alpha", n.real("alpha", 1)}}));
}
void import_leaky_relu(NodeImport& n) {
  n.result(n.call("leaky_relu", {n.first()}, {{"alpha", n.real("negative_slope", 0.01)}}));
}
void import_celu(NodeImport& n) {
  n.result(n.call("celu", {n.first()}, {{"alpha", n.real("alpha", 1)}}));
}
void import_hardsigmoid(NodeImport& n) {
  n.result(n.call("hard_sigmoid", {n.first()}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

Var clipped(NodeImport& n, Var x, double low, double high) {
  return n.call("clip", {x, n.number(low, n.dtype(x)), n.number(high, n.dtype(x))});
}
void import_hardtanh(NodeImport& n) {
  n.result(clipped(n, n.first(), n.real("min_val", -1), n.real("max_val", 1)));
}
void import_relu6(NodeImport& n) { n.result(clipped(n, n.first(), 0, 6)); }

void import_softplus(NodeImport& n) {
  const double beta = n.real("beta", 1), threshold = n.real("threshold", 20);
  const Var x = n.first();
  const Var soft = n.call("softplus", {x * beta}) / beta;
  // Above the threshold PyTorch returns x itself, which the logarithm equals in rounding.
  if (threshold >= 15) return n.result(soft);
  const Var is_linear = n.call("greater", {x * beta, n.number(threshold, n.dtype(x))});
  n.result(n.call("where", {is_linear, x, soft}));
}

void import_threshold(NodeImport& n) {
  const Var x = n.first();
  const Var is_above = n.call("greater", {x, n.operand("threshold", n.dtype(x))});
  n.result(n.call("where", {is_above, x, n.operand("value", n.dtype(x))}));
}
void import_hardshrink(NodeImport& n) {
  n.result(n.call("shrink", {n.first()}, {{"bound", n.real("lambd", 0.5)}, {"bias", 0.0}}));
}
void import_softshrink(NodeImport& n) {
  const double bound = n.real("lambd", 0.5);
  n.result(n.call("shrink", {n.first()}, {{"bound", bound}, {"bias", bound}}));
}

void import_glu(NodeImport& n) {
  const Var x = n.first();
  const std::size_t axis = n.axis("dim", n.rank(x), -1);
  const Var halves = x;
  const std::vector<Var> parts =
      n.call_all("split", {halves},
                 {{"axis", Dim(static_cast<std::int64_t>(axis))},
                  {"sizes", Dims{n.result_dims()[axis], n.result_dims()[axis]}}},
                 2);
  n.result(parts[0] * n.call("sigmoid", {parts[1]}));
}

void import_prelu(NodeImport& n) {
  const Var x = n.first();
  Var slope = n.tensor("weight");
  if (n.rank(slope) == 1 && n.rank(x) > 2) {
    Dims dims(n.rank(x) - 1, 1);
    dims[0] = n.dims(slope)[0];
    slope = reshape_to(slope, dims);
  }
  n.result(n.call("prelu", {x, slope}));
}

// Arithmetic in the result's type; `alpha` scales the second operand.
Var scaled(NodeImport& n, Var x, std::string_view name) {
  if (!n.has(name)) return x;
  const double factor = n.real(name);
  return factor == 1 ? x : n.call("mul", {x, n.number(factor, n.dtype(x))});
}
void import_add(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var a = n.operand("self", dtype), b = scaled(n, n.operand("other", dtype), "alpha");
  if (dtype == DType::Bool) return n.result(n.call("logical_or", {a, b}));
  n.result(n.call("add", {a, b}));
}
void import_sub(NodeImport& n) {
  const DType dtype = n.result_dtype();
  n.result(
      n.call("sub", {n.operand("self", dtype), scaled(n, n.operand("other", dtype), "alpha")}));
}
void import_rsub(NodeImport& n) {
  const DType dtype = n.result_dtype();
  n.result(
      n.call("sub", {n.operand("other", dtype), scaled(n, n.operand("self", dtype), "alpha")}));
}
void import_mul(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var a = n.operand("self", dtype), b = n.operand("other", dtype);
  if (n.is_complex("self") && n.is_complex("other")) {
    // (a + bi)(c + di): the last axis holds both parts.
    const auto part = [&](Var x, std::int64_t k) {
      return n.call("slice", {x}, {{"starts", Dims{k}}, {"ends", Dims{k + 1}}, {"axes", Dims{-1}}});
    };
    const Var real = part(a, 0) * part(b, 0) - part(a, 1) * part(b, 1);
    const Var imaginary = part(a, 0) * part(b, 1) + part(a, 1) * part(b, 0);
    return n.result(n.call("concat", {real, imaginary}, {{"axis", Dim(-1)}}));
  }
  if (n.is_complex()) n.unsupported("a complex number times a real one");
  n.result(n.call(dtype == DType::Bool ? "logical_and" : "mul", {a, b}));
}

Var floor_quotient(NodeImport& n, Var a, Var b) {
  if (is_float(n.dtype(a))) return n.call("floor", {n.call("div", {a, b})});
  // Integer division truncates; the remainder has the divisor's sign.
  return n.call("div", {n.call("sub", {a, n.call("mod", {a, b})}), b});
}
void import_div(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var a = n.operand("self", dtype), b = n.operand("other", dtype);
  const std::string mode = n.text("rounding_mode", "none");
  if (mode == "floor" || n.op == "floor_divide") return n.result(floor_quotient(n, a, b));
  const Var quotient = n.call("div", {a, b});
  n.result(mode == "trunc" && is_float(dtype) ? n.call("trunc", {quotient}) : quotient);
}
void import_reciprocal(NodeImport& n) { n.result(n.call("reciprocal", {floating(n)})); }

void import_pow(NodeImport& n) {
  const DType dtype = n.result_dtype();
  if (!n.is_tensor("exponent")) {
    const double exponent = n.real("exponent");
    const Var x = n.operand("self", dtype);
    if (exponent == 1) return n.result(x);
    if (exponent == 2) return n.result(x * x);
    if (exponent == 3) return n.result(x * x * x);
    if (exponent == 0.5 && is_float(dtype)) return n.result(n.call("sqrt", {x}));
  }
  n.result(n.call("pow", {n.operand("self", dtype), n.operand("exponent", dtype)}));
}

void import_remainder(NodeImport& n) {
  const DType dtype = n.result_dtype();
  n.result(n.call("mod", {n.operand("self", dtype), n.operand("other", dtype)},
                  {{"sign", word(n.op == "fmod" ? "dividend" : "divisor")}}));
}

// max and min of two tensors.
Var extreme(NodeImport& n, bool is_max, Var a, Var b) {
  return n.call(is_max ? "maximum" : "minimum", {a, b});
}
void import_maximum(NodeImport& n) {
  const DType dtype = n.result_dtype();
  n.result(extreme(n, n.op == "maximum" || n.op == "fmax", n.operand("self", dtype),
                   n.operand("other", dtype)));
}

void import_atan2(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var y = n.operand("self", dtype), x = n.operand("other", dtype);
  const Var zero = n.number(0, dtype), angle = n.call("atan", {y / x});
  const Var turn = n.call("where", {n.call("less", {y, zero}), n.number(-std::numbers::pi, dtype),
                                    n.number(std::numbers::pi, dtype)});
  const Var at_left = n.call("where", {n.call("less", {x, zero}), angle + turn, angle});
  const Var vertical = n.call("sign", {y}) * (std::numbers::pi / 2);
  n.result(n.call("where", {n.call("equal", {x, zero}), vertical, at_left}));
}

void import_bitwise(NodeImport& n) {
  static const std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>>
      names = {
          {"bitwise_and", {"bit_and", "logical_and"}}, {"__and__", {"bit_and", "logical_and"}},
          {"bitwise_or", {"bit_or", "logical_or"}},    {"__or__", {"bit_or", "logical_or"}},
          {"bitwise_xor", {"bit_xor", "logical_xor"}}, {"__xor__", {"bit_xor", "logical_xor"}}};
  const auto& [bits, truth] = names.at(n.op);
  const DType dtype = n.result_dtype();
  n.result(n.call(dtype == DType::Bool ? truth : bits,
                  {n.operand("self", dtype), n.operand("other", dtype)}));
}
void import_shift(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const bool is_left = n.op.find("left") != std::string_view::npos || n.op == "__lshift__";
  n.result(n.call(is_left ? "shift_left" : "shift_right",
                  {n.operand("self", dtype), n.operand("other", dtype)}));
}
void import_logical(NodeImport& n) {
  const Var a = n.operand("self", DType::Bool), b = n.operand("other", DType::Bool);
  n.result(n.call(n.op, {a, b}));
}

void import_comparison(NodeImport& n) {
  static const std::unordered_map<std::string_view, std::string_view> names = {
      {"eq", "equal"},      {"ne", "equal"},   {"lt", "less"},
      {"le", "less_equal"}, {"gt", "greater"}, {"ge", "greater_equal"}};
  const DType dtype = n.promoted({"self", "other"});
  const Var truth = n.call(names.at(n.op), {n.operand("self", dtype), n.operand("other", dtype)});
  n.result(n.op == "ne" ? n.call("logical_not", {truth}) : truth);
}

void import_where(NodeImport& n) {
  if (!n.has("self")) n.unsupported("positions of true elements depend on data");
  const DType dtype = n.result_dtype();
  n.result(n.call("where", {cast_to(n.tensor("condition"), DType::Bool), n.operand("self", dtype),
                            n.operand("other", dtype)}));
}

void import_clamp(NodeImport& n) {
  const DType dtype = n.result_dtype();
  Var x = n.operand("self", dtype);
  const auto is_scalar = [&](std::string_view name) { return !n.has(name) || !n.is_tensor(name); };
  if (is_scalar("min") && is_scalar("max")) {
    const Var low = n.has("min") ? n.operand("min", dtype) : Var();
    const Var high = n.has("max") ? n.operand("max", dtype) : Var();
    return n.result(n.call("clip", {x, low, high}));
  }
  if (n.has("min")) x = extreme(n, true, x, n.operand("min", dtype));
  if (n.has("max")) x = extreme(n, false, x, n.operand("max", dtype));
  n.result(x);
}

void import_lerp(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var a = n.operand("self", dtype), b = n.operand("end", dtype);
  n.result(a + n.call("mul", {n.operand("weight", dtype), b - a}));
}
void import_addcmul(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const Var a = n.operand("tensor1", dtype), b = n.operand("tensor2", dtype);
  const Var term = n.call(n.op == "addcmul" ? "mul" : "div", {a, b});
  n.result(n.call("add", {n.operand("self", dtype), scaled(n, term, "value")}));
}
void import_masked_fill(NodeImport& n) {
  const DType dtype = n.result_dtype();
  n.result(n.call("where", {cast_to(n.tensor("mask"), DType::Bool), n.operand("value", dtype),
                            n.operand("self", dtype)}));
}

// In-place assignments in functional form.
void import_copy(NodeImport& n) {
  n.result(expand_to(n.operand("src", n.result_dtype()), n.result_dims()));
}
void import_fill(NodeImport& n) {
  n.result(expand_to(n.operand("value", n.result_dtype()), n.result_dims()));
}
void import_zero(NodeImport& n) {
  n.result(expand_to(n.number(0, n.result_dtype()), n.result_dims()));
}

void import_cast(NodeImport& n) { n.result(cast_to(n.first(), n.result_dtype())); }
// Without effect in inference.
void import_identity(NodeImport& n) { n.result(n.first()); }
void import_dropout(NodeImport& n) {
  if (n.flag("train") && n.real("p", 0.5) > 0)
    n.unsupported("it is in training mode; call eval() before the export");
  n.result(n.first());
}

constexpr Handler elementwise_table[] = {
    {"abs", import_unary},
    {"acos", import_unary},
    {"acosh", import_unary},
    {"asin", import_unary},
    {"asinh", import_unary},
    {"atan", import_unary},
    {"atanh", import_unary},
    {"ceil", import_unary},
    {"cos", import_unary},
    {"cosh", import_unary},
    {"erf", import_unary},
    {"exp", import_unary},
    {"floor", import_unary},
    {"hardswish", import_unary},
    {"log", import_unary},
    {"mish", import_unary},
    {"neg", import_unary},
    {"relu", import_unary},
    {"selu", import_unary},
    {"sgn", import_unary},
    {"sigmoid", import_unary},
    {"sign", import_unary},
    {"silu", import_unary},
    {"sin", import_unary},
    {"sinh", import_unary},
    {"sqrt", import_unary},
    {"tan", import_unary},
    {"tanh", import_unary},
    {"trunc", import_unary},
    {"fix", import_unary},
    {"bitwise_not", import_unary},
    {"logical_not", import_logical_not},
    {"isnan", import_test},
    {"isinf", import_test},
    {"isfinite", import_test},
    {"isposinf", import_test},
    {"isneginf", import_test},
    {"log1p", import_log1p},
    {"expm1", import_expm1},
    {"log2", import_log2},
    {"log10", import_log10},
    {"exp2", import_exp2},
    {"rsqrt", import_rsqrt},
    {"erfc", import_erfc},
    {"square", import_square},
    {"log_sigmoid", import_log_sigmoid},
    {"log_sigmoid_forward", import_log_sigmoid},
    {"round", import_round},
    {"gelu", import_gelu},
    {"elu", import_elu},
    {"leaky_relu", import_leaky_relu},
    {"celu", import_celu},
    {"hardsigmoid", import_hardsigmoid},
    {"hardtanh", import_hardtanh},
    {"relu6", import_relu6},
    {"softplus", import_softplus},
    {"threshold", import_threshold},
    {"hardshrink", import_hardshrink},
    {"softshrink", import_softshrink},
    {"glu", import_glu},
    {"prelu", import_prelu},
    {"_prelu_kernel", import_prelu},
    {"add", import_add},
    {"sub", import_sub},
    {"subtract", import_sub},
    {"rsub", import_rsub},
    {"mul", import_mul},
    {"multiply", import_mul},
    {"div", import_div},
    {"divide", import_div},
    {"true_divide", import_div},
    {"floor_divide", import_div},
    {"reciprocal", import_reciprocal},
    {"pow", import_pow},
    {"remainder", import_remainder},
    {"fmod", import_remainder},
    {"maximum", import_maximum},
    {"minimum", import_maximum},
    {"fmax", import_maximum},
    {"fmin", import_maximum},
    {"atan2", import_atan2},
    {"bitwise_and", import_bitwise},
    {"bitwise_or", import_bitwise},
    {"bitwise_xor", import_bitwise},
    {"__and__", import_bitwise},
    {"__or__", import_bitwise},
    {"__xor__", import_bitwise},
    {"bitwise_left_shift", import_shift},
    {"bitwise_right_shift", import_shift},
    {"__lshift__", import_shift},
    {"__rshift__", import_shift},
    {"logical_and", import_logical},
    {"logical_or", import_logical},
    {"logical_xor", import_logical},
    {"eq", import_comparison},
    {"ne", import_comparison},
    {"lt", import_comparison},
    {"le", import_comparison},
    {"gt", import_comparison},
    {"ge", import_comparison},
    {"where", import_where},
    {"clamp", import_clamp},
    {"clamp_min", import_clamp},
    {"clamp_max", import_clamp},
    {"clip", import_clamp},
    {"lerp", import_lerp},
    {"addcmul", import_addcmul},
    {"addcdiv", import_addcmul},
    {"masked_fill", import_masked_fill},
    {"copy", import_copy},
    {"fill", import_fill},
    {"zero", import_zero},
    {"to", import_cast},
    {"_to_copy", import_cast},
    {"type_as", import_cast},
    {"contiguous", import_identity},
    {"clone", import_identity},
    {"alias", import_identity},
    {"detach", import_identity},
    {"detach_", import_identity},
    {"lift_fresh_copy", import_identity},
    {"lift_fresh", import_identity},
    {"positive", import_identity},
    {"dropout", import_dropout},
    {"feature_dropout", import_dropout},
    {"alpha_dropout", import_dropout},
    {"feature_alpha_dropout", import_dropout},
    {"native_dropout", import_dropout},
};

}  // namespace

std::span<const Handler> elementwise_handlers() { return elementwise_table; }

}  // namespace tenon::frontends::torch
