#pragma once

#include "ir/op_def.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The text that rewrite rules are written in; docs/decisions/rewrite_rules.md describes it.
namespace tenon::rewrite {

/// The names of a rule's variables; a variable's slot is its place here.
using Names = std::vector<std::string>;

/// What one attribute of a node has to be, or in a replacement becomes.
struct AttrTerm {
  std::string name;
  std::optional<AttrValue> literal;
  /// of the variable, where there is no literal
  std::size_t slot = 0;
};

/// One piece of a pattern or replacement.
struct Term {
  enum class Kind {
    /// `_`
    Any,
    /// `x`: a value, the same one wherever the name stands
    Variable,
    /// `b?`: an operand that may be missing
    Optional,
    /// an operand that is not there
    Missing,
    /// `...xs`: all further operands
    Rest,
    /// `0.5`: a constant every element of which is this number, sign of zero too
    Number,
    /// `~0.7978`: likewise, up to the rounding of its element type
    NearNumber,
    /// `$e`: a constant that is one number throughout
    NumberVariable,
    /// `add(a, b) {…}`: a node
    Call,
    /// `a | b`
    Choice,
  };
  Kind kind = Kind::Any;
  std::size_t slot = 0;
  /// `c: sub(a, b)`: the slot that takes the call's result
  std::optional<std::size_t> label;
  double number = 0;
  /// `reshape/squeeze(x)`: one of these
  std::vector<const OpDef*> ops;
  /// `cast?(x)`: the node may be missing
  bool is_optional = false;
  /// `mul*(a, b, c)`: in any order and nesting
  bool is_chain = false;
  /// of a call by position, or the choices
  std::vector<Term> args;
  std::vector<AttrTerm> attrs;
  /// `..`: others may be set; without it they have their default
  bool has_other_attrs = false;
  /// `..r`: the slot that takes the others
  std::optional<std::size_t> other_attrs;
};

/// Abbreviations by name: `square(x)` for `mul(x, x) | pow(x, 2)`.
struct Definition {
  std::vector<std::string> parameters;
  std::string body;
};
using Definitions = std::map<std::string, Definition, std::less<>>;

/// Reads "name(a, b) = pattern".
void add_definition(Definitions& definitions, std::string_view text);

/// Reads a pattern or replacement and adds its variables to `names`. Throws Error for bad text, an
/// op that does not exist or an attribute or operand that the op does not have.
Term parse_term(std::string_view text, const Definitions& definitions, Names& names);

/// Whether the op gives the same for its two operands exchanged, as its lowering tells. Minimum and
/// maximum do, but for the sign of a zero.
bool commutes(const OpDef& op);

}  // namespace tenon::rewrite
