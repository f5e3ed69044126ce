#pragma once

#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon::inline base {

/// Category of an error; the command line derives its exit code.
enum class ErrorKind {
  ComparisonFailed = 1,
  Usage = 2,
  InvalidModel = 3,
  Unsupported = 4,
  OutOfMemory = 5,
  Device = 6,
  Internal = 7,
};

/// Type-erased argument of concat, so that joining is compiled once and not per list of types.
class TextPart {
 public:
  // NOLINTNEXTLINE: literals convert implicitly
  TextPart(const char* const& text) : value_(text), append_(append_literal) {}
  template <class T>
  // NOLINTNEXTLINE: types with a text form convert implicitly
  TextPart(const T& value) : value_(&value), append_(append<T>) {}

  void append_to(std::string& text) const { append_(text, value_); }

 private:
  static void append_literal(std::string& text, const void* value);
  template <class T>
  static void append(std::string& text, const void* value) {
    const T& part = *static_cast<const T*>(value);
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      text += std::string_view(part);
    } else {
      using std::to_string;
      text += to_string(part);  // found by argument-dependent lookup
    }
  }

  const void* value_;
  void (*append_)(std::string&, const void*);
};
// Common types, compiled once.
template <>
void TextPart::append<std::string>(std::string& text, const void* value);
template <>
void TextPart::append<std::string_view>(std::string& text, const void* value);
template <>
void TextPart::append<int>(std::string& text, const void* value);
template <>
void TextPart::append<unsigned>(std::string& text, const void* value);
template <>
void TextPart::append<long>(std::string& text, const void* value);
template <>
void TextPart::append<unsigned long>(std::string& text, const void* value);

std::string join_parts(std::initializer_list<TextPart> parts);

/// Concatenates the text forms of its arguments.
template <class... Parts>
[[gnu::always_inline]] inline std::string concat(const Parts&... parts) {
  return join_parts({TextPart(parts)...});
}

/// An error that names its place: a node, a pass, a file.
class PlacedError : public std::exception {
 public:
  bool has_place() const { return !at_.empty(); }
  const std::string& place() const { return at_; }
  /// Sets the place, unless a more specific one is set.
  void locate(std::string place);
  /// The whole message.
  const char* what() const noexcept override { return text_.c_str(); }

 protected:
  virtual void compose() = 0;

  std::string at_, text_;
};

/// Ends the operation because of invalid input, with the fields what, at, expected, got and hint.
/// Its message is the summary and a labelled line per field.
class Error : public PlacedError {
 public:
  explicit Error(std::string summary, ErrorKind kind = ErrorKind::InvalidModel);
  // Out of line, because every throw would inline them.
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error() override;

  template <class... Parts>
  Error& at(const Parts&... parts) {
    return set(at_, {TextPart(parts)...});
  }
  template <class... Parts>
  Error& expected(const Parts&... parts) {
    return set(expected_, {TextPart(parts)...});
  }
  template <class... Parts>
  Error& got(const Parts&... parts) {
    return set(got_, {TextPart(parts)...});
  }
  template <class... Parts>
  Error& hint(const Parts&... parts) {
    return set(hint_, {TextPart(parts)...});
  }

  ErrorKind kind() const { return kind_; }
  const std::string& summary() const { return summary_; }
  /// Further errors of the same model, for readers that find all of them.
  const std::vector<Error>& further() const { return further_; }
  void set_further(std::vector<Error> errors);

 private:
  void compose() override;
  Error& set(std::string& field, std::initializer_list<TextPart> parts);

  ErrorKind kind_;
  std::string summary_, expected_, got_, hint_;
  std::vector<Error> further_;
};

/// Reports a broken invariant in Tenon itself: a bug, never the user's fault. Its message is one
/// line (`base/internal_report.h` has the line for the user).
class InternalError : public PlacedError {
 public:
  /// Further lines of `should_hold` become the details.
  InternalError(const char* condition, std::string_view should_hold, const char* file, int line);
  InternalError(const InternalError&);
  InternalError& operator=(const InternalError&) = delete;
  ~InternalError() override;

  /// Material for the report, such as a loop nest; empty if there is none.
  const std::string& details() const { return details_; }
  void add_details(std::string_view text);

 private:
  void compose() override;

  std::string summary_, source_, details_;
};

}  // namespace tenon::inline base

#define TENON_ASSERT(condition, should_hold)                                                     \
  do {                                                                                           \
    if (!(condition)) throw ::tenon::InternalError(#condition, should_hold, __FILE__, __LINE__); \
  } while (false)
