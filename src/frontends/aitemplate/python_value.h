#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::aitemplate {

/// A value as Python prints it.
struct PythonValue {
  enum class Kind : std::uint8_t {
    None,
    Bool,
    Integer,
    Real,
    Text,
    List,
    Tuple,
    Set,
    FrozenSet,
    Dict,
    OrderedDict,
    /// the attributes of an object that prints itself, whatever stands around it
    Object,
    /// the same of an object that prints them on one line, in their own order
    JaggedDim,
    /// Name(key=value, …), as a data class prints
    Call,
    /// a symbol or a formula, as sympy prints it
    Expression,
    /// <…>: an enumerator, a function, an object without a text form
    Opaque,
  };
  Kind kind = Kind::None;
  /// of a Bool too
  std::int64_t integer = 0;
  double real = 0;
  /// of a Text, Expression or Opaque; the name of a Call
  std::string text;
  std::vector<PythonValue> items;
  /// one for each item of a dict, object or call
  std::vector<PythonValue> keys;
  /// where it stands in the text it was read from
  std::size_t offset = 0;

  PythonValue() = default;
  PythonValue(const PythonValue&);
  PythonValue(PythonValue&&) noexcept;
  PythonValue& operator=(const PythonValue&);
  PythonValue& operator=(PythonValue&&) noexcept;
  ~PythonValue();

  static PythonValue boolean(bool value);
  static PythonValue number(std::int64_t value);
  static PythonValue real_number(double value);
  static PythonValue string(std::string value);
  static PythonValue expression(std::string value);
  static PythonValue opaque(std::string value);
  static PythonValue of(Kind kind, std::vector<PythonValue> items = {});
  static PythonValue list(const std::vector<std::string>& texts);
  static PythonValue list(const std::vector<std::int64_t>& numbers);

  bool is(Kind wanted) const { return kind == wanted; }
  bool has_keys() const;
  /// Adds a member to a dict, object or call.
  void set(std::string_view key, PythonValue value);
  /// The member of that name, or null.
  const PythonValue* find(std::string_view key) const;
};

using Member = std::pair<std::string, PythonValue>;

/// What the version of Python that prints does in its own way.
struct PythonStyle {
  /// since 3.10: a data class too wide for a line is broken up
  bool wraps_calls = true;
  /// since 3.12: OrderedDict({…}) where that fits on a line
  bool braces_in_ordered = false;
};

/// A text in quotes, a number: as `repr` gives them.
std::string text_repr(std::string_view text);
std::string real_repr(double value);

/// What `pprint.pformat(value, indent=2)` gives: at most 80 columns where that can be.
std::string pretty_print(const PythonValue& value, const PythonStyle& style);

}  // namespace tenon::aitemplate
