#include "base/text.h"
#include "base/text_place.h"
#include "base/utf8.h"
#include "documents/chainer/tables.h"
#include "documents/python_text.h"

#include <charconv>
#include <cmath>
#include <unordered_set>

namespace tenon::documents::chainer {
namespace {

constexpr std::size_t kMaxDepth = 50;

// Parses a JSON object on one line. Also accepts NaN and Infinity, which Python writes.
class AttributeReader {
 public:
  AttributeReader(std::string_view text, std::string_view source, std::size_t position,
                  std::size_t end)
      : text_(text), source_(source), position_(position), start_(position), end_(end) {}

  std::vector<ChainerAttribute> read() {
    std::vector<ChainerAttribute> attributes;
    std::unordered_set<std::string> seen;
    expect('{');
    skip_spaces();
    if (!take('}')) {
      do {
        skip_spaces();
        const std::size_t at = position_;
        ChainerAttribute attribute;
        attribute.name = text();
        if (!seen.insert(attribute.name).second) {
          throw error(concat("the attribute '", attribute.name, "' comes twice"), at);
        }
        expect(':');
        skip_spaces();
        attribute.column = position_ - start_ + 1;
        attribute.value = value(1);
        attributes.push_back(std::move(attribute));
        skip_spaces();
      } while (take(','));
      expect('}');
    }
    if (position_ != end_) throw error("the attributes are one JSON object", position_);
    return attributes;
  }

 private:
  Error error(std::string summary, std::size_t at) const {
    Error problem(std::move(summary));
    problem.at(text_place(source_, text_, at));
    if (at >= text_.size()) problem.hint("the file may be cut short");
    return problem;
  }

  char peek() const { return position_ < end_ ? text_[position_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t') ++position_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.substr(position_, end_ - position_).substr(0, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  void expect(char c) {
    skip_spaces();
    if (!take(c))
      throw error(concat("the attributes need '", std::string(1, c), "' here"), position_);
  }

  frontends::JsonValue value(std::size_t depth) {
    if (depth > kMaxDepth) throw error("the attributes are nested too deeply", position_);
    if (peek() == '{') return object(depth);
    if (peek() == '[') return array(depth);
    if (peek() == '"') return text();
    if (take("null")) return nullptr;
    if (take("true")) return true;
    if (take("false")) return false;
    if (take("NaN")) return std::nan("");
    if (take("Infinity")) return HUGE_VAL;
    if (take("-Infinity")) return -HUGE_VAL;
    return number();
  }

  frontends::JsonValue::Array array(std::size_t depth) {
    frontends::JsonValue::Array elements;
    expect('[');
    skip_spaces();
    if (take(']')) return elements;
    do {
      skip_spaces();
      elements.push_back(value(depth + 1));
      skip_spaces();
    } while (take(','));
    expect(']');
    return elements;
  }

  frontends::JsonValue::Object object(std::size_t depth) {
    frontends::JsonValue::Object members;
    std::unordered_set<std::string> seen;
    expect('{');
    skip_spaces();
    if (take('}')) return members;
    do {
      skip_spaces();
      const std::size_t at = position_;
      std::string name = text();
      if (!seen.insert(name).second) throw error(concat("the member '", name, "' comes twice"), at);
      expect(':');
      skip_spaces();
      frontends::JsonValue member = value(depth + 1);
      members.emplace_back(std::move(name), std::move(member));
      skip_spaces();
    } while (take(','));
    expect('}');
    return members;
  }

  frontends::JsonValue number() {
    const std::size_t at = position_;
    std::size_t end = position_;
    while (end < end_ &&
           std::string_view("+-.0123456789eE").find(text_[end]) != std::string_view::npos) {
      ++end;
    }
    const std::string_view digits = text_.substr(at, end - at);
    position_ = end;
    if (digits.find_first_of(".eE") == std::string_view::npos) {
      if (const std::optional<std::int64_t> integer = parse_integer(digits)) return *integer;
      throw error(digits.empty() ? "an attribute has no value" : "the number is out of range", at);
    }
    double real = 0;
    const auto [rest, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), real);
    if (problem != std::errc() || rest != digits.data() + digits.size())
      throw error("this is not a number", at);
    return real;
  }

  std::uint32_t hex_digits() {
    std::uint32_t code = 0;
    if (end_ - position_ < 4) throw error("an escape is cut short", position_);
    const char* first = text_.data() + position_;
    const auto [rest, problem] = std::from_chars(first, first + 4, code, 16);
    if (problem != std::errc() || rest != first + 4) throw error("this is no escape", position_);
    position_ += 4;
    return code;
  }

  void append_escape(std::string& result) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t at = position_;
    if (take('u')) {
      std::uint32_t code = hex_digits();
      if (code >= 0xd800 && code < 0xdc00 && take("\\u")) {
        const std::uint32_t low = hex_digits();
        if (low < 0xdc00 || low >= 0xe000) throw error("half of a surrogate pair is missing", at);
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      if (code >= 0xd800 && code < 0xe000) throw error("half of a surrogate pair is missing", at);
      append_utf8(result, code);
      return;
    }
    const std::size_t letter = kLetters.find(peek());
    if (position_ >= end_ || letter == std::string_view::npos) throw error("this is no escape", at);
    ++position_;
    result += kMeanings[letter];
  }

  std::string text() {
    std::string result;
    if (!take('"')) throw error("a text in double quotes belongs here", position_);
    while (!take('"')) {
      if (position_ >= end_) throw error("the text has no end", position_);
      const char c = text_[position_];
      if (static_cast<unsigned char>(c) < 0x20)
        throw error("a control character in a text", position_);
      if (static_cast<unsigned char>(c) >= 0x80)
        throw error("a character that is not ASCII", position_);
      ++position_;
      if (c == '\\') {
        append_escape(result);
      } else {
        result += c;
      }
    }
    return result;
  }

  std::string_view text_, source_;
  std::size_t position_, start_, end_;
};

// Python's json.dumps escapes everything but ASCII.
void append_text(std::string& text, std::string_view value) {
  std::string quoted;
  frontends::append_json_text(quoted, value, "\"\\bfnrt");
  for (std::size_t at = 0; at < quoted.size();) {
    const auto [code, bytes] = decode_utf8(std::string_view(quoted).substr(at));
    if (bytes < 2 && code < 0x7f) {
      text += quoted[at];
    } else if (code < 0x10000) {
      frontends::append_json_code(text, code);
    } else {
      frontends::append_json_code(text, 0xd800 + ((code - 0x10000) >> 10));
      frontends::append_json_code(text, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
    at += std::max<std::size_t>(bytes, 1);
  }
}

void append_real(std::string& text, double value) {
  if (std::isfinite(value)) {
    text += python_real(value);
  } else {
    text += std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  }
}

constexpr frontends::JsonStyle kStyle{"{", "[", append_text, append_real};

}  // namespace

std::vector<ChainerAttribute> parse_attributes(std::string_view text, std::string_view source,
                                               std::size_t position, std::size_t end) {
  return AttributeReader(text, source, position, end).read();
}

std::string print_attributes(const std::vector<ChainerAttribute>& attributes) {
  std::string text = "{";
  for (const ChainerAttribute& attribute : attributes) {
    if (text.size() > 1) text += ", ";
    append_text(text, attribute.name);
    text += ": ";
    frontends::print_json(text, attribute.value, kStyle);
  }
  return text + "}";
}

}  // namespace tenon::documents::chainer
