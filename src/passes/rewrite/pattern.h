#pragma once

#include "ir/op_def.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The syntax of rewrite rules; docs/decisions/rewrite_rules.md describes it.
namespace tenon::passes::rewrite {

/// Names of a rule's variables; the slot of a variable is its index here.
using Names = std::vector<std::string>;

/// Required value of a node's attribute, or its value in a replacement.
struct AttrTerm {
  std::string name;
  std::optional<AttrValue> literal;
  /// of the variable, without a literal
  std::size_t slot = 0;
};

/// A term of a pattern or replacement.
struct PatternTerm {
  enum class Kind {
    /// `_`
    Any,
    /// `x`: a value, the same one at every occurrence
    Variable,
    /// `b?`: an optional operand
    Optional,
    /// an absent operand
    Missing,
    /// `...xs`: all further operands
    Rest,
    /// `0.5`: a constant whose elements all equal this number, including the sign of zero
    Number,
    /// `~0.7978`: likewise, within the rounding of its element type
    NearNumber,
    /// `$e`: a constant whose elements are all equal
    NumberVariable,
    /// `add(a, b) {…}`: a node
    Call,
    /// `a | b`
    Choice,
  };
  Kind kind = Kind::Any;
  std::size_t slot = 0;
  /// `c: sub(a, b)`: slot of the call's result
  std::optional<std::size_t> label;
  double number = 0;
  /// `reshape/squeeze(x)`: one of these
  std::vector<const OpDef*> ops;
  /// `cast?(x)`: the node may be missing
  bool is_optional = false;
  /// `mul*(a, b, c)`: in any order and nesting
  bool is_chain = false;
  /// arguments of a call, or the alternatives
  std::vector<PatternTerm> args;
  std::vector<AttrTerm> attrs;
  /// `..`: further attributes may be set; otherwise they have their defaults
  bool has_other_attrs = false;
  /// `..r`: slot of the further attributes
  std::optional<std::size_t> other_attrs;
};

/// Named abbreviations: `square(x)` for `mul(x, x) | pow(x, 2)`.
struct Definition {
  std::vector<std::string> parameters;
  std::string body;
};
using Definitions = std::map<std::string, Definition, std::less<>>;

/// Parses "name(a, b) = pattern".
void add_definition(Definitions& definitions, std::string_view text);

/// Parses a pattern or replacement and adds its variables to `names`. Throws Error for invalid
/// text, or an op, attribute or operand that does not exist.
PatternTerm parse_term(std::string_view text, const Definitions& definitions, Names& names);

/// Returns whether the op is commutative, according to its lowering. Minimum and maximum are,
/// except for the sign of a zero.
bool commutes(const OpDef& op);

}  // namespace tenon::passes::rewrite
