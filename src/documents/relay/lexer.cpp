#include "documents/relay/lexer.h"

#include "base/text_place.h"

#include <array>

namespace tenon::documents::relay {
namespace {

constexpr std::string_view kMetadataHeader = "#[metadata]";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}
bool is_name_char(char c) { return is_letter(c) || is_digit(c); }

class Tokenizer {
 public:
  Tokenizer(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  std::vector<Token> run() {
    for (;;) {
      skip_space();
      start_ = at_;
      if (at_ == text_.size()) break;
      if (rest().starts_with(kMetadataHeader)) {
        add(Token::Kind::Metadata, at_ + kMetadataHeader.size(), text_.size());
        break;
      }
      next();
    }
    add(Token::Kind::End, text_.size(), text_.size());
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_space() {
    for (;;) {
      while (at_ < text_.size() &&
             (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r'))
        ++at_;
      if (!rest().starts_with("//")) return;
      while (at_ < text_.size() && peek() != '\n') ++at_;
    }
  }

  void add(Token::Kind kind, std::size_t from, std::size_t to) {
    tokens_.push_back({kind, text_.substr(from, to - from), start_});
    at_ = to;
  }

  void next() {
    const char c = peek();
    if (rest().starts_with("/*")) return comment();
    if (c == '"' || c == '\'') return quoted();
    if (c == '%' && is_digit(peek(1)))
      return add(Token::Kind::Graph, at_ + 1, end_of_digits(at_ + 1));
    if (c == '%' && is_letter(peek(1)))
      return add(Token::Kind::Local, at_ + 1, end_of_local(at_ + 1));
    if (c == '@' && is_letter(peek(1)))
      return add(Token::Kind::Global, at_ + 1, end_of_path(at_ + 1));
    if (c == '.' && is_digit(peek(1)))
      return add(Token::Kind::Projection, at_ + 1, end_of_digits(at_ + 1));
    if (is_digit(c)) return add(Token::Kind::Number, at_, end_of_number());
    // `a /b` is a quotient, `a/b` a name.
    if (is_letter(c) && c != '/') return add(Token::Kind::Word, at_, end_of_path(at_));
    sign();
  }

  std::size_t end_of_digits(std::size_t at) const {
    while (at < text_.size() && is_digit(text_[at])) ++at;
    return at;
  }
  // A `/` that starts a comment ends a name.
  std::size_t end_of_name(std::size_t at) const {
    while (at < text_.size() && is_name_char(text_[at])) {
      if (text_[at] == '/' && at + 1 < text_.size() &&
          (text_[at + 1] == '*' || text_[at + 1] == '/'))
        break;
      ++at;
    }
    return at;
  }
  std::size_t end_of_path(std::size_t at) const {
    at = end_of_name(at);
    while (at + 1 < text_.size() && text_[at] == '.' && is_letter(text_[at + 1]))
      at = end_of_name(at + 1);
    return at;
  }
  // Names of frameworks' values: `%onnx::Conv_0`, `%layer1.0.weight`. The parser decides whether a
  // number at the end is part of the name or a tuple field, since it knows the names.
  std::size_t end_of_local(std::size_t at) const {
    for (;;) {
      at = end_of_name(at);
      const std::size_t gap = text_.substr(at).starts_with("::")  ? 2
                              : text_.substr(at).starts_with(".") ? 1
                                                                  : 0;
      if (gap == 0 || at + gap >= text_.size() || !is_name_char(text_[at + gap]) ||
          text_[at + gap] == '/')
        return at;
      at += gap;
    }
  }
  std::size_t end_of_number() const {
    std::size_t at = end_of_digits(at_);
    if (at + 1 < text_.size() && text_[at] == '.' && is_digit(text_[at + 1]))
      at = end_of_digits(at + 1);
    if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
      std::size_t exponent = at + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) at = end_of_digits(exponent);
    }
    while (at < text_.size() && is_name_char(text_[at]) && text_[at] != '/') ++at;
    return at;
  }

  void comment() {
    int depth = 0;
    std::size_t at = at_;
    while (at + 1 < text_.size()) {
      if (text_[at] == '/' && text_[at + 1] == '*') {
        ++depth;
        at += 2;
      } else if (text_[at] == '*' && text_[at + 1] == '/') {
        --depth;
        at += 2;
        if (depth == 0) {
          tokens_.push_back({Token::Kind::Comment, text_.substr(at_ + 2, at - at_ - 4), start_});
          at_ = at;
          return;
        }
      } else {
        ++at;
      }
    }
    throw Error("a comment does not end").at(text_place(source_, text_, start_));
  }

  void quoted() {
    std::size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != peek()) at += text_[at] == '\\' ? 2 : 1;
    if (at >= text_.size())
      throw Error("a text does not end").at(text_place(source_, text_, start_));
    add(Token::Kind::Text, at_, at + 1);
  }

  void sign() {
    static constexpr std::array<std::string_view, 28> signs = {
        "->", "=>", "==", "!=", "<=", ">=", "#[", "(", ")", "[", "]", "{", "}", ",",
        ";",  ":",  "=",  "+",  "-",  "*",  "/",  "<", ">", "?", ".", "!", "&", "|"};
    for (const std::string_view sign : signs) {
      if (rest().starts_with(sign)) return add(Token::Kind::Sign, at_, at_ + sign.size());
    }
    throw Error("this is no word of Relay")
        .at(text_place(source_, text_, start_))
        .got(concat(
            "'",
            peek() >= ' ' && peek() < 0x7f ? std::string(1, peek()) : "a byte that is no letter",
            "'"));
  }

  std::string_view text_, source_;
  std::size_t at_ = 0, start_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, std::string_view source) {
  return Tokenizer(text, source).run();
}

}  // namespace tenon::documents::relay
