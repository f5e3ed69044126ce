#pragma once

#include "base/error.h"
#include "ir/graph.h"
#include "ops/definition/attr_field.h"
#include "ops/definition/operand_types.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::inline ops {

/// Operands and results are written as names; `optional("b")` and `variadic("xs")` qualify them.
struct OperandName {
  OperandName(const char* text, bool may_miss = false,
              bool may_repeat = false)  // NOLINT: a name is an operand
      : name(text), is_optional(may_miss), is_variadic(may_repeat) {}
  const char* name;
  bool is_optional, is_variadic;
};
inline OperandName optional(const char* name) { return {name, true, false}; }
inline OperandName variadic(const char* name) { return {name, false, true}; }

/// Result of `infer`: one type, or one per result.
struct ResultTypes : std::vector<Type> {
  ResultTypes(TensorType type) : std::vector<Type>{Type(std::move(type))} {}     // NOLINT
  ResultTypes(Type type) : std::vector<Type>{std::move(type)} {}                 // NOLINT
  ResultTypes(std::vector<Type> types) : std::vector<Type>(std::move(types)) {}  // NOLINT
  ResultTypes(std::initializer_list<Type> types) : std::vector<Type>(types) {}
};

struct NotDifferentiable {
  std::string reason;
};
/// Reason for a missing gradient, which `tenon ops` shows.
inline NotDifferentiable not_differentiable(std::string reason) { return {std::move(reason)}; }

/// Function pointer with an adapter that restores its type.
template <class Result, class Argument>
struct PlainRule {
  Result (*call)(void (*rule)(), const void* attrs, Argument& argument);
  void (*rule)();
  Result operator()(const void* attrs, Argument& argument) const {
    return call(rule, attrs, argument);
  }
};

/// Type-erased function of an op's typed attributes and one more argument: code that uses it is
/// compiled once instead of once per op.
template <class Attrs, class Result, class Argument>
struct OpRule {
  OpRule() = default;
  template <class R, class A, class B>
  OpRule(R (*rule)(A, B))  // NOLINT: a function is a rule
      : call(PlainRule<Result, Argument>{
            [](void (*plain)(), const void* attrs, Argument& argument) -> Result {
              return reinterpret_cast<R (*)(A, B)>(plain)(*static_cast<const Attrs*>(attrs),
                                                          argument);
            },
            reinterpret_cast<void (*)()>(rule)}) {}
  template <class F, std::enable_if_t<std::is_invocable_v<F, const Attrs&, Argument&>, int> = 0>
  OpRule(F rule)  // NOLINT: so is a function with captures
      : call([rule = std::move(rule)](const void* attrs, Argument& argument) -> Result {
          return rule(*static_cast<const Attrs*>(attrs), argument);
        }) {}
  std::function<Result(const void*, Argument&)> call;
};

template <class Attrs>
using InferRule = OpRule<Attrs, ResultTypes, const OperandTypes>;

template <class Attrs>
struct GradientRule : OpRule<Attrs, void, Gradient> {
  using OpRule<Attrs, void, Gradient>::OpRule;
  GradientRule(NotDifferentiable why) : no_gradient_reason(std::move(why.reason)) {}  // NOLINT
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

/// Attributes of an op without attributes.
struct NoAttrs {};

/// Definition of an operator as its file writes it; converts to an OpDef.
template <class Attrs>
struct OpSpec {
  std::string name;
  std::string summary;
  std::vector<OperandName> operands = {};
  std::vector<OperandName> results = {};
  std::vector<AttrField<Attrs>> attrs = {};
  std::vector<const char*> bodies = {};
  InferRule<Attrs> infer = {};
  /// Elements of small integer results, only if they cannot be derived from `lower`.
  OpRule<Attrs, std::optional<Dims>, const OperandTypes> known = {};
  OpRule<Attrs, void, Lowering> lower = {};
  OpRule<Attrs, void, Evaluation> evaluate = {};
  GradientRule<Attrs> gradient = {};
  std::optional<Fusion> fusion = {};
  LayoutRule layout = {};
  Precision precision = Precision::NeedsF32;
  bool is_random = false;
  std::vector<const char*> examples = {};

  operator OpDef() const;  // NOLINT: converts a spec to a definition
};

/// Spec with its attribute type erased.
struct ErasedSpec {
  /// Names, operands, results, bodies and traits.
  OpDef def;
  std::vector<ErasedField> fields;
  void* (*make_attrs)() = nullptr;
  void (*free_attrs)(void*) = nullptr;
  std::function<ResultTypes(const void*, const OperandTypes&)> infer;
  std::function<std::optional<Dims>(const void*, const OperandTypes&)> known;
  std::function<void(const void*, Lowering&)> lower;
  std::function<void(const void*, Evaluation&)> evaluate;
  std::function<void(const void*, Gradient&)> gradient;

  // Out of line, as for OpDef.
  ErasedSpec();
  ErasedSpec(const ErasedSpec&);
  ErasedSpec(ErasedSpec&&) noexcept;
  ErasedSpec& operator=(const ErasedSpec&);
  ErasedSpec& operator=(ErasedSpec&&) noexcept;
  ~ErasedSpec();
};
OpDef make_op_def(ErasedSpec spec);

/// Fills the lists of a spec's definition.
void set_lists(ErasedSpec& spec, std::span<const OperandName> operands,
               std::span<const OperandName> results, std::span<const FieldSpec> attrs,
               std::span<const char* const> bodies, std::span<const char* const> examples);

template <class Attrs>
OpSpec<Attrs>::operator OpDef() const {
  ErasedSpec erased;
  erased.make_attrs = []() -> void* { return new Attrs{}; };
  erased.free_attrs = [](void* typed) { delete static_cast<Attrs*>(typed); };
  static_assert(sizeof(AttrField<Attrs>) == sizeof(FieldSpec));
  const FieldSpec* fields = attrs.data();
  set_lists(erased, operands, results, {fields, attrs.size()}, bodies, examples);
  erased.def.name = name;
  erased.def.summary = summary;
  erased.infer = infer.call;
  erased.known = known.call;
  erased.lower = lower.call;
  erased.evaluate = evaluate.call;
  erased.gradient = gradient.call;
  erased.def.no_gradient_reason = gradient.no_gradient_reason;
  erased.def.fusion = fusion;
  erased.def.layout = layout;
  erased.def.precision = precision;
  erased.def.is_random = is_random;
  return make_op_def(std::move(erased));
}

/// Adds examples to an op that a family function defines.
OpDef with_examples(std::vector<const char*> examples, OpDef op);

/// Defines an op under the name that `ops/list.inc` lists: `TENON_DEFINE_OP(softmax) = OpSpec…;`
#define TENON_DEFINE_OP(id)   \
  extern const OpDef op_##id; \
  const OpDef op_##id

}  // namespace tenon::inline ops
