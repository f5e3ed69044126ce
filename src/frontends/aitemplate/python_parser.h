#pragma once

#include "base/error.h"
#include "frontends/aitemplate/python_value.h"

#include <string_view>

namespace tenon::aitemplate {

/// Reads values as Python prints them. Which dicts are objects that print themselves follows from
/// their members' names.
class PythonParser {
 public:
  PythonParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  /// The value that stands here. Throws Error with line and column; refuses values nested more than
  /// 100 deep, integers that 64 bits do not hold and a member that comes twice.
  PythonValue value();
  /// Skips white space.
  void skip_space();
  bool at_end() const { return position_ == text_.size(); }
  bool accept(std::string_view word);
  void expect(std::string_view word);

  /// Whether what was read so far may look otherwise from another Python.
  bool depends_on_style() const { return depends_on_style_; }
  std::size_t position() const { return position_; }
  Error error(std::string summary) const { return error(std::move(summary), position_); }
  Error error(std::string summary, std::size_t position) const;

 private:
  PythonValue nested_value();
  PythonValue texts();
  std::string one_text();
  void append_escape(std::string& text);
  PythonValue opaque();
  PythonValue number_or_expression();
  PythonValue call(std::string name);
  PythonValue ordered_dict();
  std::vector<PythonValue> items(char close);
  PythonValue brackets();
  PythonValue braces();
  void member_values(PythonValue& dict, PythonValue first_key);
  std::string_view word_here() const;
  char here() const { return at_end() ? '\0' : text_[position_]; }

  std::string_view text_, source_;
  std::size_t position_ = 0;
  int depth_ = 0;
  bool depends_on_style_ = false;
};

}  // namespace tenon::aitemplate
