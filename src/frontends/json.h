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

namespace tenon {

/// A JSON value. Members keep the order they stand in, which some writers give a meaning to.
struct Json {
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;
  using Value =
      std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;
  Value value;

  Json() = default;
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, Json> && std::constructible_from<Value, T>)
      Json(T&& held)
      : value(std::forward<T>(held)) {}  // NOLINT: what it holds is a value
  static Array integers(const std::vector<std::int64_t>& list);
};
struct Json::Member {
  std::string first;
  Json second;
};

/// Reads one value that is the whole text. Throws Error with line and column; refuses a member that
/// comes twice, integers that 64 bits do not hold, and texts nested more than 100 deep.
Json parse_json(std::string_view text, std::string_view source);

/// How a writer spaces values and spells texts and numbers; members and elements are on one line.
struct JsonStyle {
  std::string_view open_object;
  /// of one with elements
  std::string_view open_array;
  void (*append_text)(std::string& to, std::string_view text);
  void (*append_real)(std::string& to, double number);
};
void print_json(std::string& to, const Json& json, const JsonStyle& style);
/// Appends a text in quotes. `letters` are those that stand for a character behind a backslash, out
/// of the ones JSON has; other control characters go by their numbers.
void append_json_text(std::string& to, std::string_view text, std::string_view letters);
/// \u001f
void append_json_code(std::string& to, std::uint32_t code);

/// A value and the path to it: reads what should be there, or throws an Error that names the path.
class JsonReader {
 public:
  /// `source` is the file, for messages; both outlive the reader.
  JsonReader(const Json& json, std::string_view source)
      : json_(&json), source_(source), path_("$") {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(json_->value); }
  bool is_text() const { return std::holds_alternative<std::string>(json_->value); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(json_->value); }
  bool boolean() const;
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// an integer is one too
  double real() const;
  const std::string& text() const;
  std::vector<std::int64_t> integers() const;

  /// The member of an object, which must be there, or may be.
  JsonReader member(std::string_view name) const;
  std::optional<JsonReader> find(std::string_view name) const;
  /// Every member of an object, by name, and every element of an array.
  std::vector<std::pair<std::string_view, JsonReader>> members() const;
  std::vector<JsonReader> elements() const;
  /// Throws if an object has a member that is not in the list.
  void allow_only(std::initializer_list<std::string_view> names) const;

  const Json& json() const { return *json_; }
  /// "$.graph_exec.var.12"
  const std::string& path() const { return path_; }
  /// An error at this place.
  Error error(std::string summary) const;

 private:
  JsonReader(const Json& json, std::string_view source, std::string path)
      : json_(&json), source_(source), path_(std::move(path)) {}
  template <class T>
  const T& get(std::string_view expected) const;

  const Json* json_;
  std::string_view source_;
  std::string path_;
};

}  // namespace tenon
