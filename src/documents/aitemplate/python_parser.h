#pragma once

#include "base/error.h"
#include "documents/aitemplate/python_value.h"

#include <string_view>

namespace tenon::documents::aitemplate {

/// Parses values as Python prints them. Recognises dicts that represent self-printing objects by
/// their members' names.
class PythonParser {
 public:
  PythonParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  /// Reads the value at the position. Throws Error with line and column; refuses values nested more
  /// than 100 deep, integers beyond 64 bits and duplicate members.
  PythonValue value();
  /// Skips white space.
  void skip_space();
  bool at_end() const { return position_ == text_.size(); }
  bool accept(std::string_view word);
  void expect(std::string_view word);

  /// Returns whether another version of Python may print the read text differently.
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

}  // namespace tenon::documents::aitemplate
