#pragma once

#include "ir/attribute.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline expr {
class Lowering;  // expr/lowering.h
}

namespace tenon::inline ops {
class Gradient;    // ops/definition/gradient.h
class Evaluation;  // ops/definition/evaluation.h
}  // namespace tenon::inline ops

namespace tenon::inline ir {

class Graph;

struct OperandDef {
  std::string name;
  bool is_optional = false;
  /// Last operand only: any number of values, none missing.
  bool is_variadic = false;
  /// The operand provides the attribute of this name if that is only known at run time.
  bool is_dynamic_attribute = false;
};

struct ResultDef {
  std::string name;
  /// May be `_`: not computed.
  bool is_optional = false;
  bool is_variadic = false;
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::Integer;
  bool is_required = false;
  /// Absent for required attributes and for optional ones without a default.
  std::optional<AttrValue> default_value;
  /// Enumerated words of AttrKind::Word.
  std::vector<std::string> words;
};

/// Facts about one operand during type inference.
struct OperandFacts {
  Type type;
  /// Elements as dims, for small integer tensors whose values are known as numbers or symbols.
  const Dims* known = nullptr;
  /// Elements, if constant (or at run time).
  const Tensor* value = nullptr;
};

struct InferInput {
  const Attributes& attrs;
  /// By position; type Unknown for missing operands.
  const std::vector<OperandFacts>& operands;
  const std::vector<bool>& present;
  const std::vector<Graph>& bodies;
  std::size_t result_count = 1;
};

struct InferOutput {
  /// Unknown dims are symbols `?0`, `?1`, ….
  std::vector<Type> types;
  /// Elements of each result as dims, as in OperandFacts.
  std::vector<std::optional<Dims>> known;
};

/// Fusion kind: the kernels that an op may be fused into.
enum class Fusion : std::uint8_t { Elementwise, Reshuffle, Reduction, Contraction, Opaque };
/// Narrow types that an op can compute in.
enum class Precision : std::uint8_t { MovesOnly, Integer, NeedsF32 };

/// Layout propagation rule of an op.
struct LayoutRule {
  enum class Kind : std::uint8_t { Derived, Any, FollowsAxis, Prefers, LogicalOrder };
  Kind kind = Kind::Derived;
  /// FollowsAxis: attribute of the axis that a new layout permutes.
  std::string axis_attr;
  /// Prefers: layouts, best first.
  std::vector<std::string> preferred;
};

/// Definition of an operator with untyped attributes. Operators are written as `OpSpec<Attrs>` in
/// `ops`.
struct OpDef {
  std::string name;
  std::string summary;
  std::vector<OperandDef> operands;
  std::vector<ResultDef> results;
  std::vector<AttrDef> attrs;
  /// Names of body graphs; one named "body*" means any number.
  std::vector<std::string> bodies;

  /// Checks attributes against their definitions and drops those equal to their default.
  std::function<Attributes(Attributes)> canonical_attributes;
  std::function<InferOutput(const InferInput&)> infer;
  /// Lowering to an expression; empty if the op has `evaluate` instead.
  std::function<void(const Attributes&, Lowering&)> lower;
  /// Host evaluation of an op that no expression describes.
  std::function<void(const Attributes&, Evaluation&)> evaluate;
  std::function<void(const Attributes&, Gradient&)> gradient;
  std::string no_gradient_reason;

  /// Set only where the derived kind would be wrong.
  std::optional<Fusion> fusion;
  LayoutRule layout;
  Precision precision = Precision::NeedsF32;
  /// Two calls may differ: exempt from constant folding and common-subexpression elimination.
  bool is_random = false;
  /// Compatible operands for random graphs, for ops whose operand extents depend on each other.
  /// Syntax "x: F n c; b: F c; axis = 1": operands by name with a dtype and dims, then attributes.
  /// A letter is an extent, equal wherever it occurs; a number is itself; `_` in an attribute is
  /// any small number. Dtypes: `T` any, `F` a float, `I` an index, `B` bool, or one by its name;
  /// `T` and `F` are one dtype throughout. `x*3: …` gives a variadic operand three times. "-" alone
  /// excludes the op: random operands do not fit it.
  std::vector<std::string> examples;

  // Out of line: inline definitions would be compiled again in each op's file.
  OpDef();
  OpDef(const OpDef&);
  OpDef(OpDef&&) noexcept;
  OpDef& operator=(const OpDef&);
  OpDef& operator=(OpDef&&) noexcept;
  ~OpDef();

  const AttrDef* find_attr(std::string_view attr) const;
  std::optional<std::size_t> operand_index(std::string_view operand) const;
  std::optional<std::size_t> result_index(std::string_view result) const;
};

/// Table of operators by name, for the parser and the frontends.
class OpTable {
 public:
  explicit OpTable(std::vector<const OpDef*> ops);
  const OpDef* find(std::string_view name) const;
  /// Throws an Error that suggests the nearest name.
  const OpDef& get(std::string_view name) const;
  /// Sorted by name.
  const std::vector<const OpDef*>& all() const { return ops_; }

 private:
  std::vector<const OpDef*> ops_;
};

}  // namespace tenon::inline ir
