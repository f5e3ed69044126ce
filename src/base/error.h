#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace tenon {

/// What kind of trouble ended the work; the command line turns it into its exit code.
enum class ErrorKind {
  ComparisonFailed = 1,
  Usage = 2,
  InvalidModel = 3,
  Unsupported = 4,
  OutOfMemory = 5,
  Device = 6,
  Internal = 7,
};

namespace detail {
template <class T>
void append_text(std::string& text, const T& part) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    text += std::string_view(part);
  } else {
    using std::to_string;
    text += to_string(part);  // found beside the type, for every type with a text form
  }
}
}  // namespace detail

/// Joins the text forms of its arguments.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (detail::append_text(text, parts), ...);
  return text;
}

/// Ends the work because of what the user gave: says what, where, expected, got and what to do.
class Error : public std::exception {
 public:
  explicit Error(std::string summary, ErrorKind kind = ErrorKind::InvalidModel);

  template <class... Parts>
  Error& at(const Parts&... parts) {
    return set(at_, concat(parts...));
  }
  template <class... Parts>
  Error& expected(const Parts&... parts) {
    return set(expected_, concat(parts...));
  }
  template <class... Parts>
  Error& got(const Parts&... parts) {
    return set(got_, concat(parts...));
  }
  template <class... Parts>
  Error& hint(const Parts&... parts) {
    return set(hint_, concat(parts...));
  }

  ErrorKind kind() const { return kind_; }
  const std::string& summary() const { return summary_; }
  bool has_place() const { return !at_.empty(); }
  const std::string& place() const { return at_; }
  /// The whole message: the summary and a labelled line for each part that was given.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error& set(std::string& part, std::string text);

  ErrorKind kind_;
  std::string summary_, at_, expected_, got_, hint_, text_;
};

/// Ends the program's work over a broken invariant of Tenon itself: a bug, never the user's fault.
class InternalError : public std::exception {
 public:
  InternalError(const char* condition, std::string_view should_hold, const char* file, int line);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace tenon

#define TENON_ASSERT(condition, should_hold)                                            \
  do {                                                                                  \
    if (!(condition))                                                                   \
      throw ::tenon::InternalError(#condition, should_hold, __FILE__, __LINE__);        \
  } while (false)
