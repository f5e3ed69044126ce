#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::documents::aitemplate {

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
    /// Attributes of a self-printing object, in any surrounding text.
    Object,
    /// A self-printing object with attributes on one line, in its own order.
    JaggedDim,
    /// Name(key=value, …), the form of a data class.
    Call,
    /// A symbol or a formula, as sympy prints it.
    Expression,
    /// <…>: an enumerator, a function, an object without a text form.
    Opaque,
  };
  Kind kind = Kind::None;
  /// Value of an Integer or Bool.
  std::int64_t integer = 0;
  double real = 0;
  /// Value of a Text, Expression or Opaque; the name of a Call.
  std::string text;
  std::vector<PythonValue> items;
  /// One key per item of a dict, object or call.
  std::vector<PythonValue> keys;
  /// Position in the source text.
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

/// Formatting differences between Python versions.
struct PythonStyle {
  /// Since 3.10: breaks up a data class that is too wide for a line.
  bool wraps_calls = true;
  /// Since 3.12: prints OrderedDict({…}) if it fits on a line.
  bool braces_in_ordered = false;
};

/// Returns `repr` of a text or a number.
std::string text_repr(std::string_view text);
std::string real_repr(double value);

/// Returns `pprint.pformat(value, indent=2)`: at most 80 columns if possible.
std::string pretty_print(const PythonValue& value, const PythonStyle& style);

}  // namespace tenon::documents::aitemplate
