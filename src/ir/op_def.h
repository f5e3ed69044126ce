#pragma once

#include "ir/attribute.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class Graph;
class Lowering;    // ops/lowering.h
class Gradient;    // ops/gradient.h
class Evaluation;  // ops/evaluation.h

struct OperandDef {
  std::string name;
  bool is_optional = false;
  /// last of the operands: any number of values, none missing
  bool is_variadic = false;
  /// The operand stands in for the attribute of this name when that is only known at run time.
  bool is_dynamic_attribute = false;
};

struct ResultDef {
  std::string name;
  /// may be `_`: not computed
  bool is_optional = false;
  bool is_variadic = false;
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::Integer;
  bool is_required = false;
  /// absent for required ones and for true optionals
  std::optional<AttrValue> default_value;
  /// the choices of AttrKind::Word
  std::vector<std::string> words;
};

/// What is known of one operand while types are inferred.
struct OperandFacts {
  Type type;
  /// The elements as dims, for small integer tensors whose values are known as numbers or symbols.
  const Dims* known = nullptr;
  /// The elements themselves, when they are constant (or at run time).
  const Tensor* value = nullptr;
};

struct InferInput {
  const Attributes& attrs;
  /// by position; type Unknown where missing
  const std::vector<OperandFacts>& operands;
  const std::vector<bool>& present;
  const std::vector<Graph>& bodies;
  std::size_t result_count = 1;
};

struct InferOutput {
  /// unknown dims are symbols `?0`, `?1`, …
  std::vector<Type> types;
  /// as in OperandFacts, for each result
  std::vector<std::optional<Dims>> known;
};

/// What an op may join in one kernel.
enum class Fusion : std::uint8_t { Elementwise, Reshuffle, Reduction, Contraction, Opaque };
/// Which narrow types an op can work in.
enum class Precision : std::uint8_t { MovesOnly, Integer, NeedsF32 };

/// How an op takes a change of layout.
struct LayoutRule {
  enum class Kind : std::uint8_t { Derived, Any, FollowsAxis, Prefers, LogicalOrder };
  Kind kind = Kind::Derived;
  /// FollowsAxis: the attribute that moves along
  std::string axis_attr;
  /// Prefers: layouts, best first
  std::vector<std::string> preferred;
};

/// Everything Tenon knows about an operator, with its attributes untyped; `OpSpec<Attrs>` in `ops`
/// is how one is written.
struct OpDef {
  std::string name;
  std::string summary;
  std::vector<OperandDef> operands;
  std::vector<ResultDef> results;
  std::vector<AttrDef> attrs;
  /// names of body graphs; one named "body*" stands for any number
  std::vector<std::string> bodies;

  /// Checks attributes against their definitions and drops those equal to their default.
  std::function<Attributes(Attributes)> canonical_attributes;
  std::function<InferOutput(const InferInput&)> infer;
  /// empty: see `evaluate`
  std::function<void(const Attributes&, Lowering&)> lower;
  /// when no expression describes it
  std::function<void(const Attributes&, Evaluation&)> evaluate;
  std::function<void(const Attributes&, Gradient&)> gradient;
  std::string no_gradient_reason;

  /// only where the derived answer would be wrong
  std::optional<Fusion> fusion;
  LayoutRule layout;
  Precision precision = Precision::NeedsF32;
  /// two calls may differ: never folded or merged
  bool is_random = false;
  /// Operands that fit together, for random graphs, where their extents depend on each other. Reads
  /// "x: F n c; b: F c; axis = 1": operands by name with a dtype and dims, then attributes. A
  /// letter is an extent, the same wherever it stands; a number is itself; `_` in an attribute is
  /// any small number. Dtypes: `T` any, `F` a float, `I` an index, `B` bool, or one by its name;
  /// `T` and `F` are one dtype throughout. `x*3: …` gives a variadic operand three times. "-"
  /// alone: nothing made up at random would do.
  std::vector<std::string> examples;

  // Out of line: a definition for each op would have the compiler write these anew in each file.
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

/// The operators by name; looked up by the parser and the frontends.
class OpTable {
 public:
  explicit OpTable(std::vector<const OpDef*> ops);
  const OpDef* find(std::string_view name) const;
  /// Throws an Error that offers the nearest name.
  const OpDef& get(std::string_view name) const;
  /// sorted by name
  const std::vector<const OpDef*>& all() const { return ops_; }

 private:
  std::vector<const OpDef*> ops_;
};

}  // namespace tenon
