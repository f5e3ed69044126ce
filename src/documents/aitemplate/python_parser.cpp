#include "documents/aitemplate/python_parser.h"

#include "base/text.h"
#include "base/text_place.h"
#include "base/utf8.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_set>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr int kDeepest = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_word(char c) { return starts_word(c) || is_digit(c); }

// Every node has a name, a depth and a no-op flag; a tensor accessor has its mapping.
Kind kind_of(const PythonValue& dict) {
  if (dict.find("_dim_mapping") != nullptr && dict.find("original_shapes") != nullptr) {
    return Kind::Object;
  }
  const bool is_node =
      dict.find("depth") != nullptr && dict.find("name") != nullptr && dict.find("nop") != nullptr;
  if (!is_node) return Kind::Dict;
  const bool is_jagged = dict.find("offsets") != nullptr && dict.find("values") != nullptr;
  return is_jagged ? Kind::JaggedDim : Kind::Object;
}

}  // namespace

Error PythonParser::error(std::string summary, std::size_t position) const {
  return Error(std::move(summary)).at(text_place(source_, text_, position));
}

void PythonParser::skip_space() {
  while (!at_end() && (here() == ' ' || here() == '\n' || here() == '\t' || here() == '\r'))
    ++position_;
}

bool PythonParser::accept(std::string_view word) {
  if (text_.substr(position_, word.size()) != word) return false;
  position_ += word.size();
  return true;
}

void PythonParser::expect(std::string_view word) {
  skip_space();
  if (!accept(word)) {
    throw at_end() ? error(concat("the text ends where '", word, "' should stand"))
                   : error(concat("'", word, "' should stand here"));
  }
}

std::string_view PythonParser::word_here() const {
  std::size_t end = position_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  return text_.substr(position_, end - position_);
}

PythonValue PythonParser::value() {
  skip_space();
  const std::size_t start = position_;
  if (++depth_ > kDeepest) throw error(concat("values are nested more than ", kDeepest, " deep"));
  PythonValue read = nested_value();
  --depth_;
  read.offset = start;
  return read;
}

PythonValue PythonParser::nested_value() {
  if (at_end()) throw error("the text ends where a value should stand");
  const char c = here();
  if (c == '\'' || c == '"') return texts();
  if (c == '[') {
    ++position_;
    return PythonValue::of(Kind::List, items(']'));
  }
  if (c == '(') return brackets();
  if (c == '{') return braces();
  if (c == '<') return opaque();
  if (starts_word(c)) {
    const std::size_t start = position_;
    const std::string word(word_here());
    const bool is_call = text_.substr(position_ + word.size(), 1) == "(";
    // A name followed by a bracket is a call if the bracket is empty or contains argument names.
    if (is_call) {
      position_ += word.size();
      if (word == "OrderedDict") return ordered_dict();
      if (word == "set" || word == "frozenset") {
        ++position_;
        PythonValue made = PythonValue::of(word == "set" ? Kind::Set : Kind::FrozenSet);
        skip_space();
        const std::size_t inside = position_;
        if (here() == '{') {
          PythonValue braced = value();
          if (!braced.is(Kind::Set)) throw error("a set holds values without keys", inside);
          made.items = std::move(braced.items);
        }
        expect(")");
        return made;
      }
      ++position_;
      skip_space();
      const std::string_view argument = word_here();
      const std::string_view after = text_.substr(position_ + argument.size(), 2);
      const bool is_named = !argument.empty() && !after.empty() && after[0] == '=' && after != "==";
      if (is_named || here() == ')') return call(word);
      position_ = start;
    } else if (word == "None" || word == "True" || word == "False") {
      position_ += word.size();
      return word == "None" ? PythonValue() : PythonValue::boolean(word == "True");
    }
  }
  return number_or_expression();
}

// Concatenates adjacent texts, the form of a broken-up long text.
PythonValue PythonParser::texts() {
  std::string text = one_text();
  while (true) {
    const std::size_t end = position_;
    skip_space();
    if (here() != '\'' && here() != '"') {
      position_ = end;
      return PythonValue::string(std::move(text));
    }
    text += one_text();
  }
}

std::string PythonParser::one_text() {
  const std::size_t start = position_;
  const char mark = here();
  std::string text;
  for (++position_;; ++position_) {
    if (at_end() || here() == '\n') throw error("the text in quotes does not end", start);
    if (here() == mark) break;
    if (here() == '\\') {
      append_escape(text);
    } else {
      text += here();
    }
  }
  ++position_;
  return text;
}

// Leaves the position at the last character of the escape.
void PythonParser::append_escape(std::string& text) {
  const std::size_t start = position_++;
  const char c = here();
  const std::string_view letters = "\\'\"nrtabfv", meanings = "\\'\"\n\r\t\a\b\f\v";
  if (const std::size_t k = letters.find(c); c != '\0' && k != std::string_view::npos) {
    text += meanings[k];
    return;
  }
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  const std::string_view hex = text_.substr(std::min(position_ + 1, text_.size()), digits);
  std::uint32_t code = 0;
  const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
  if (digits == 0 || hex.size() != digits || read.ptr != hex.data() + hex.size() ||
      code > 0x10ffff) {
    throw error("no such escape", start);
  }
  append_utf8(text, static_cast<char32_t>(code));
  position_ += digits;
}

PythonValue PythonParser::opaque() {
  const std::size_t start = position_;
  int open = 0;
  for (; !at_end() && here() != '\n'; ++position_) {
    if (here() == '<') ++open;
    if (here() == '>' && --open == 0) {
      ++position_;
      return PythonValue::opaque(std::string(text_.substr(start, position_ - start)));
    }
  }
  throw error("the text in angle brackets does not end", start);
}

// Reads a number, or the text up to the next separator: a sympy formula.
PythonValue PythonParser::number_or_expression() {
  const std::size_t start = position_;
  int open = 0;
  for (; !at_end() && here() != '\n'; ++position_) {
    const char c = here();
    if (c == '(' || c == '[') ++open;
    if (open == 0 && (c == ',' || c == ')' || c == ']' || c == '}' || c == ':')) break;
    if (c == ')' || c == ']') --open;
    if (c == '\'' || c == '"' || c == '{' || c == '}' || c == '<' || c == '=') break;
  }
  const std::string_view word = trim(text_.substr(start, position_ - start));
  position_ = start + word.size();
  const std::string_view digits = word.substr(!word.empty() && word.front() == '-' ? 1 : 0);
  if (digits.empty()) throw error("a value should stand here", start);
  if (std::all_of(digits.begin(), digits.end(), is_digit)) {
    const std::optional<std::int64_t> number = parse_integer(word);
    if (!number) throw error("the number does not fit in 64 bits", start).got(word);
    return PythonValue::number(*number);
  }
  if (is_digit(digits.front()) || digits == "inf" || digits == "nan") {
    if (const std::optional<double> real = parse_real(word)) return PythonValue::real_number(*real);
  }
  const bool is_formula = std::all_of(word.begin(), word.end(), [](char c) {
    return is_word(c) || std::string_view(" +-*/()[],.").find(c) != std::string_view::npos;
  });
  if (!is_formula || open != 0) throw error("a value should stand here", start).got(word);
  return PythonValue::expression(std::string(word));
}

PythonValue PythonParser::ordered_dict() {
  depends_on_style_ = true;
  expect("(");
  PythonValue dict = PythonValue::of(Kind::OrderedDict);
  skip_space();
  if (accept(")")) return dict;
  const std::size_t start = position_;
  PythonValue inside = value();
  if (inside.is(Kind::Dict)) {
    dict.keys = std::move(inside.keys);
    dict.items = std::move(inside.items);
  } else {
    std::unordered_set<std::string> seen;
    if (!inside.is(Kind::List)) throw error("an OrderedDict is a list of pairs", start);
    for (PythonValue& pair : inside.items) {
      if (!pair.is(Kind::Tuple) || pair.items.size() != 2) {
        throw error("an OrderedDict is a list of pairs", pair.offset);
      }
      const PythonValue& key = pair.items[0];
      if (key.is(Kind::Text) && !seen.insert(key.text).second) {
        throw error(concat("the key ", text_repr(key.text), " comes twice"), key.offset);
      }
      dict.keys.push_back(std::move(pair.items[0]));
      dict.items.push_back(std::move(pair.items[1]));
    }
  }
  expect(")");
  return dict;
}

PythonValue PythonParser::call(std::string name) {
  depends_on_style_ = true;
  PythonValue made = PythonValue::of(Kind::Call);
  made.text = std::move(name);
  std::unordered_set<std::string> seen;
  skip_space();
  while (here() != ')') {
    const std::string argument(word_here());
    if (argument.empty() || !starts_word(argument[0]))
      throw error("the name of an argument should stand here");
    if (!seen.insert(argument).second)
      throw error(concat("the argument '", argument, "' comes twice"));
    position_ += argument.size();
    expect("=");
    made.set(argument, value());
    skip_space();
    if (here() == ')') break;
    expect(",");
    skip_space();
  }
  expect(")");
  return made;
}

std::vector<PythonValue> PythonParser::items(char close) {
  std::vector<PythonValue> read;
  skip_space();
  while (here() != close) {
    read.push_back(value());
    skip_space();
    if (here() == close) break;
    expect(",");
    skip_space();
  }
  ++position_;
  return read;
}

// Reads a tuple, or a broken-up text in brackets.
PythonValue PythonParser::brackets() {
  const std::size_t start = position_++;
  skip_space();
  if (accept(")")) return PythonValue::of(Kind::Tuple);
  PythonValue first = value();
  skip_space();
  if (accept(")")) {
    if (!first.is(Kind::Text)) throw error("a tuple of one value ends in ',)'", start);
    return first;
  }
  expect(",");
  PythonValue tuple = PythonValue::of(Kind::Tuple);
  tuple.items = items(')');
  tuple.items.insert(tuple.items.begin(), std::move(first));
  return tuple;
}

PythonValue PythonParser::braces() {
  ++position_;
  skip_space();
  if (accept("}")) return PythonValue::of(Kind::Dict);
  PythonValue first = value();
  skip_space();
  if (here() != ':') {
    PythonValue set = PythonValue::of(Kind::Set);
    if (accept(",")) {
      set.items = items('}');
    } else {
      expect("}");
    }
    set.items.insert(set.items.begin(), std::move(first));
    return set;
  }
  PythonValue dict = PythonValue::of(Kind::Dict);
  member_values(dict, std::move(first));
  dict.kind = kind_of(dict);
  return dict;
}

void PythonParser::member_values(PythonValue& dict, PythonValue key) {
  std::unordered_set<std::string> seen;
  while (true) {
    const bool is_plain = key.is(Kind::Text) || key.is(Kind::Integer);
    if (!is_plain) throw error("a key is a text or a number", key.offset);
    const std::string name = key.is(Kind::Text) ? text_repr(key.text) : std::to_string(key.integer);
    if (!seen.insert(name).second)
      throw error(concat("the key ", name, " comes twice"), key.offset);
    expect(":");
    dict.keys.push_back(std::move(key));
    dict.items.push_back(value());
    skip_space();
    if (accept("}")) return;
    expect(",");
    skip_space();
    if (accept("}")) return;
    key = value();
  }
}

}  // namespace tenon::documents::aitemplate
