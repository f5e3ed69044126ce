#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/attr_field.h"
#include "ops/operand_types.h"

namespace tenon {

/// Operands and results are written as their names; `optional("b")`, `variadic("xs")` say more.
struct OperandName : OperandDef {
  OperandName(const char* text) { name = text; }  // NOLINT: a name is an operand
  OperandName(OperandDef def) : OperandDef(std::move(def)) {}  // NOLINT
};
struct ResultName : ResultDef {
  ResultName(const char* text) { name = text; }  // NOLINT: a name is a result
  ResultName(const OperandDef& def)  // NOLINT
      : ResultDef{def.name, def.is_optional, def.is_variadic} {}
};
inline OperandDef optional(const char* name) { return {name, true, false, false}; }
inline OperandDef variadic(const char* name) { return {name, false, true, false}; }

/// What `infer` gives: one type, or one for each result.
struct ResultTypes : std::vector<Type> {
  ResultTypes(TensorType type) : std::vector<Type>{Type(std::move(type))} {}  // NOLINT
  ResultTypes(Type type) : std::vector<Type>{std::move(type)} {}              // NOLINT
  ResultTypes(std::vector<Type> types) : std::vector<Type>(std::move(types)) {}  // NOLINT
  ResultTypes(std::initializer_list<Type> types) : std::vector<Type>(types) {}
};

template <class Attrs>
struct InferRule {
  InferRule() = default;
  InferRule(TensorType (*rule)(const Attrs&, const OperandTypes&))  // NOLINT
      : call([rule](const Attrs& attrs, const OperandTypes& in) { return ResultTypes(rule(attrs, in)); }) {}
  InferRule(ResultTypes (*rule)(const Attrs&, const OperandTypes&)) : call(rule) {}  // NOLINT
  InferRule(std::function<ResultTypes(const Attrs&, const OperandTypes&)> rule)      // NOLINT
      : call(std::move(rule)) {}
  std::function<ResultTypes(const Attrs&, const OperandTypes&)> call;
};

struct NotDifferentiable {
  std::string reason;
};
/// The reason why an op has no gradient, in the words `tenon ops` shows.
inline NotDifferentiable not_differentiable(std::string reason) { return {std::move(reason)}; }

template <class Attrs>
struct GradientRule {
  GradientRule() = default;
  GradientRule(void (*rule)(const Attrs&, Gradient&)) : call(rule) {}                 // NOLINT
  GradientRule(std::function<void(const Attrs&, Gradient&)> rule)                     // NOLINT
      : call(std::move(rule)) {}
  GradientRule(NotDifferentiable why) : no_gradient_reason(std::move(why.reason)) {}  // NOLINT
  std::function<void(const Attrs&, Gradient&)> call;
  std::string no_gradient_reason;
};

inline LayoutRule any_layout() { return {LayoutRule::Kind::Any, {}, {}}; }
inline LayoutRule logical_order() { return {LayoutRule::Kind::LogicalOrder, {}, {}}; }
inline LayoutRule follows_axis(std::string attr) {
  return {LayoutRule::Kind::FollowsAxis, std::move(attr), {}};
}
inline LayoutRule prefers(std::vector<std::string> layouts) {
  return {LayoutRule::Kind::Prefers, {}, std::move(layouts)};
}

/// For an op without attributes.
struct NoAttrs {};

/// All that Tenon knows about an operator, as its file writes it; becomes an OpDef.
template <class Attrs>
struct OpSpec {
  std::string name;
  std::string summary;
  std::vector<OperandName> operands = {};
  std::vector<ResultName> results = {};
  std::vector<AttrField<Attrs>> attrs = {};
  std::vector<std::string> bodies = {};
  InferRule<Attrs> infer = {};
  /// Elements of small integer results; only where they do not follow from `lower`.
  std::optional<Dims> (*known)(const Attrs&, const OperandTypes&) = nullptr;
  std::function<void(const Attrs&, Lowering&)> lower = {};
  void (*evaluate)(const Attrs&, Evaluation&) = nullptr;
  GradientRule<Attrs> gradient = {};
  std::optional<Fusion> fusion = {};
  LayoutRule layout = {};
  std::vector<std::pair<std::string, std::string>> in_place = {};
  Precision precision = Precision::NeedsF32;
  bool is_random = false;

  operator OpDef() const;  // NOLINT: the spec is how a definition is written
};

namespace detail {
/// The part of `infer` that does not depend on Attrs: unknown operands, known elements, counts.
InferOutput finish_inference(const OpDef& op, const InferInput& input, const Attributes& attrs,
                             const std::function<ResultTypes(const OperandTypes&)>& rule,
                             const std::function<std::optional<Dims>(const OperandTypes&)>& known);
void check_known_attributes(const OpDef& op, const Attributes& attrs);
}  // namespace detail

/// The typed attributes of a node. Late ones come from its operands; gives false if the value of
/// one is needed and not known yet.
template <class Attrs>
bool read_attributes(const std::vector<AttrField<Attrs>>& fields, const OpDef& op,
                     const Attributes& attrs, const OperandTypes* operands, Attrs& typed) {
  for (const AttrField<Attrs>& field : fields) {
    if (const AttrValue* value = attrs.find(field.def.name)) {
      field.set(typed, *value);
    } else if (field.is_late && operands && operands->has(field.def.name)) {
      if (!field.set_late(typed, *operands)) return false;
    } else if (field.def.is_required) {
      throw Error(concat(op.name, ": attribute '", field.def.name, "' is missing"));
    }
  }
  return true;
}

template <class Attrs>
OpSpec<Attrs>::operator OpDef() const {
  OpDef def;
  def.name = name;
  def.summary = summary;
  for (const OperandName& operand : operands) def.operands.push_back(operand);
  for (const ResultName& result : results) def.results.push_back(result);
  for (const AttrField<Attrs>& field : attrs) {
    def.attrs.push_back(field.def);
    if (field.is_late) def.operands.push_back({field.def.name, true, false, true});
  }
  def.bodies = bodies;
  // The lambdas own copies of the fields and a copy of the finished definition's names.
  auto fields = attrs;
  auto names = std::make_shared<OpDef>(def);
  def.canonical_attributes = [fields, names](Attributes given) {
    detail::check_known_attributes(*names, given);
    Attributes kept;
    for (const AttrField<Attrs>& field : fields) {
      const AttrValue* value = given.find(field.def.name);
      if (!value) continue;
      Attrs typed{};
      field.set(typed, *value);
      std::optional<AttrValue> canonical = field.get(typed);
      if (!canonical) continue;
      if (field.def.default_value && equal(*canonical, *field.def.default_value)) continue;
      kept.set(field.def.name, std::move(*canonical));
    }
    return kept;
  };
  names->lower = def.lower = nullptr;
  if (lower) {
    auto call = lower;
    def.lower = [call, fields, names](const Attributes& given, Lowering& op) {
      Attrs typed{};
      read_attributes(fields, *names, given, nullptr, typed);
      call(typed, op);
    };
    names->lower = def.lower;
  }
  if (infer.call) {
    auto rule = infer.call;
    auto known_rule = known;
    def.infer = [rule, known_rule, fields, names](const InferInput& input) {
      Attrs typed{};
      bool is_complete = true;
      auto typed_rule = [&](const OperandTypes& in) {
        is_complete = read_attributes(fields, *names, input.attrs, &in, typed);
        if (!is_complete) throw OperandTypes::NotKnownYet{};
        return rule(typed, in);
      };
      auto typed_known = [&](const OperandTypes& in) -> std::optional<Dims> {
        return known_rule ? known_rule(typed, in) : std::nullopt;
      };
      return detail::finish_inference(*names, input, input.attrs, typed_rule, typed_known);
    };
  }
  if (evaluate) {
    auto call = evaluate;
    def.evaluate = [call, fields, names](const Attributes& given, Evaluation& op) {
      Attrs typed{};
      read_attributes(fields, *names, given, nullptr, typed);
      call(typed, op);
    };
  }
  if (gradient.call) {
    auto call = gradient.call;
    def.gradient = [call, fields, names](const Attributes& given, Gradient& op) {
      Attrs typed{};
      read_attributes(fields, *names, given, nullptr, typed);
      call(typed, op);
    };
  }
  def.no_gradient_reason = gradient.no_gradient_reason;
  def.fusion = fusion;
  def.layout = layout;
  def.in_place = in_place;
  def.precision = precision;
  def.is_random = is_random;
  return def;
}

extern template struct OpSpec<NoAttrs>;  // made once, in op_spec.cpp, for the many ops without

/// Defines an op under the name that `ops/list.inc` lists: `TENON_DEFINE_OP(softmax) = OpSpec…;`
#define TENON_DEFINE_OP(id)    \
  extern const OpDef op_##id;  \
  const OpDef op_##id

}  // namespace tenon
