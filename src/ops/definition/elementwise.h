#pragma once

#include "expr/lowering.h"
#include "ops/definition/elements.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::inline ops {

/// Node builders for gradients: `call` appends a node, `choose` is `where` with numbers as
/// operands.
Var call(std::string_view op, const std::vector<Var>& operands,
         const std::vector<Attr>& attrs = {});
Var choose(Var condition, Var a, double b);
Var choose(Var condition, double a, Var b);
Var choose(Var condition, Var a, Var b);
Var choose(Var condition, double a, double b, Var like);
Var number(double value, Var like);
Var is_greater(Var x, double bound);
Var is_less(Var x, double bound);

namespace detail {
/// Rule with optional attributes: `f(attrs, arguments…)` or `f(arguments…)`.
template <class Attrs, class Result, class... Arguments>
struct ElementRule {
  ElementRule() = default;
  template <class F, std::enable_if_t<std::is_invocable_r_v<Result, F, Arguments...>, int> = 0>
  ElementRule(F rule)  // NOLINT: a function is a rule
      : call([rule](const Attrs&, Arguments... arguments) { return rule(arguments...); }) {}
  template <class F,
            std::enable_if_t<std::is_invocable_r_v<Result, F, const Attrs&, Arguments...>, int> = 0>
  ElementRule(F rule) : call(rule) {}                                                // NOLINT
  ElementRule(NotDifferentiable why) : no_gradient_reason(std::move(why.reason)) {}  // NOLINT
  std::function<Result(const Attrs&, Arguments...)> call;
  std::string no_gradient_reason;
};
}  // namespace detail

/// Specification of an elementwise op from x to y.
template <class Attrs = NoAttrs>
struct UnarySpec {
  std::string name;
  std::string summary;
  Elements takes = floats;
  std::vector<AttrField<Attrs>> attrs = {};
  detail::ElementRule<Attrs, Expr, Expr> value = {};
  /// dy/dx from x and y, or `not_differentiable(…)`.
  detail::ElementRule<Attrs, Var, Var, Var> slope = {};
  bool gives_bool = false;
  Precision precision = Precision::NeedsF32;

  operator OpDef() const;  // NOLINT: converts a spec to a definition
};

/// Specification of an elementwise op from a and b, of one dtype and broadcast, to y.
template <class Attrs = NoAttrs>
struct BinarySpec {
  std::string name;
  std::string summary;
  Elements takes = floats;
  std::vector<AttrField<Attrs>> attrs = {};
  detail::ElementRule<Attrs, Expr, Expr, Expr> value = {};
  GradientRule<Attrs> gradient = {};
  bool gives_bool = false;

  operator OpDef() const;  // NOLINT: converts a spec to a definition
};

/// Gradient of minimum and maximum: flows to the selected operand, half to each in a tie.
void gradient_of_extreme(const NoAttrs&, Gradient& op);
/// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x);

inline NotDifferentiable gives_truth_value() {
  return not_differentiable("its result is a truth value");
}

template <class Attrs>
UnarySpec<Attrs>::operator OpDef() const {
  OpSpec<Attrs> spec;
  spec.name = name;
  spec.summary = summary;
  spec.operands = {"x"};
  spec.results = {"y"};
  spec.attrs = attrs;
  spec.infer = [*this](const Attrs&, const OperandTypes& in) {
    TensorType type = require_elements(in, "x", takes);
    if (gives_bool) type.dtype = DType::Bool;
    return ResultTypes(std::move(type));
  };
  spec.lower = [*this](const Attrs& given, Lowering& op) {
    op.define("y", value.call(given, op.operand("x")));
  };
  if (!slope.no_gradient_reason.empty()) {
    spec.gradient = not_differentiable(slope.no_gradient_reason);
  } else if (slope.call) {
    spec.gradient = [*this](const Attrs& given, Gradient& op) {
      op.add("x", op.upstream("y") * slope.call(given, op.operand("x"), op.result("y")));
    };
  }
  if (gives_bool) spec.gradient = gives_truth_value();
  spec.precision = precision;
  return spec;
}

template <class Attrs>
BinarySpec<Attrs>::operator OpDef() const {
  OpSpec<Attrs> spec;
  spec.name = name;
  spec.summary = summary;
  spec.operands = {"a", "b"};
  spec.results = {"y"};
  spec.attrs = attrs;
  spec.infer = [*this](const Attrs&, const OperandTypes& in) {
    const TensorType& a = require_elements(in, "a", takes);
    const TensorType& b = in["b"];
    require_same_dtype(in.op_name(), a, b);
    return ResultTypes(broadcast_type(in.op_name(), a, b, gives_bool ? DType::Bool : a.dtype));
  };
  spec.lower = [*this](const Attrs& given, Lowering& op) {
    op.define("y", value.call(given, op.operand("a"), op.operand("b")));
  };
  spec.gradient = gradient;
  if (gives_bool) spec.gradient = gives_truth_value();
  return spec;
}

// Instantiated in elementwise.cpp.
extern template struct UnarySpec<NoAttrs>;
extern template struct BinarySpec<NoAttrs>;

}  // namespace tenon::inline ops
