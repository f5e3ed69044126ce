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
  std::size_t slot = 0;  ///< of the variable, where there is no literal
};

/// One piece of a pattern or replacement.
struct Term {
  enum class Kind {
    Any,             ///< `_`
    Variable,        ///< `x`: a value, the same one wherever the name stands
    Optional,        ///< `b?`: an operand that may be missing
    Missing,         ///< an operand that is not there
    Rest,            ///< `...xs`: all further operands
    Number,          ///< `0.5`: a constant every element of which is this number, sign of zero too
    NearNumber,      ///< `~0.7978`: likewise, up to the rounding of its element type
    NumberVariable,  ///< `$e`: a constant that is one number throughout
    Call,            ///< `add(a, b) {…}`: a node
    Choice,          ///< `a | b`
  };
  Kind kind = Kind::Any;
  std::size_t slot = 0;
  std::optional<std::size_t> label;  ///< `c: sub(a, b)`: the slot that takes the call's result
  double number = 0;
  std::vector<const OpDef*> ops;  ///< `reshape/squeeze(x)`: one of these
  bool is_optional = false;       ///< `cast?(x)`: the node may be missing
  bool is_chain = false;          ///< `mul*(a, b, c)`: in any order and nesting
  std::vector<Term> args;         ///< of a call by position, or the choices
  std::vector<AttrTerm> attrs;
  bool has_other_attrs = false;  ///< `..`: others may be set; without it they have their default
  std::optional<std::size_t> other_attrs;  ///< `..r`: the slot that takes the others
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
