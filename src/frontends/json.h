#pragma once

#include "base/error.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::frontends {

/// A JSON value. Members keep their order, which is significant for some writers.
struct JsonValue {
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;
  using Value =
      std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;
  Value value;

  JsonValue() = default;
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, JsonValue> && std::constructible_from<Value, T>)
      JsonValue(T&& held)
      : value(std::forward<T>(held)) {}  // NOLINT: implicit conversion from contents
  static Array integers(const std::vector<std::int64_t>& list);
};
struct JsonValue::Member {
  std::string first;
  JsonValue second;
};

/// Parses a text that is one value. Throws Error with line and column; refuses duplicate members,
/// integers beyond 64 bits, and nesting over 100 levels.
JsonValue parse_json(std::string_view text, std::string_view source);

/// Spacing, quoting and number format of a writer; members and elements are on one line.
struct JsonStyle {
  std::string_view open_object;
  /// Opening bracket of a nonempty array.
  std::string_view open_array;
  void (*append_text)(std::string& to, std::string_view text);
  void (*append_real)(std::string& to, double number);
};
void print_json(std::string& to, const JsonValue& json, const JsonStyle& style);
/// Appends a quoted text. `letters` are the JSON escape letters to use after a backslash; other
/// control characters are written as codes.
void append_json_text(std::string& to, std::string_view text, std::string_view letters);
/// Appends e.g. \u001f.
void append_json_code(std::string& to, std::uint32_t code);

/// A value with its path: returns the expected contents or throws an Error that names the path.
class JsonReader {
 public:
  /// `source` is the file name for messages; both must outlive the reader.
  JsonReader(const JsonValue& json, std::string_view source)
      : json_(&json), source_(source), path_("$") {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(json_->value); }
  bool is_text() const { return std::holds_alternative<std::string>(json_->value); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(json_->value); }
  bool boolean() const;
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// Accepts integers too.
  double real() const;
  const std::string& text() const;
  std::vector<std::int64_t> integers() const;

  /// Returns a member of an object; `member` throws if it is missing.
  JsonReader member(std::string_view name) const;
  std::optional<JsonReader> find(std::string_view name) const;
  /// Returns all members of an object, by name, or all elements of an array.
  std::vector<std::pair<std::string_view, JsonReader>> members() const;
  std::vector<JsonReader> elements() const;
  /// Throws if an object has a member outside the list.
  void allow_only(std::initializer_list<std::string_view> names) const;

  const JsonValue& json() const { return *json_; }
  /// E.g. "$.graph_exec.var.12".
  const std::string& path() const { return path_; }
  /// Returns an error at this path.
  Error error(std::string summary) const;

 private:
  JsonReader(const JsonValue& json, std::string_view source, std::string path)
      : json_(&json), source_(source), path_(std::move(path)) {}
  template <class T>
  const T& get(std::string_view expected) const;

  const JsonValue* json_;
  std::string_view source_;
  std::string path_;
};

}  // namespace tenon::frontends
