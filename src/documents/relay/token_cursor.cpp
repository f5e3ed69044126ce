#include "documents/relay/token_cursor.h"

#include "base/text.h"
#include "base/text_place.h"
#include "documents/relay/types.h"

#include <cmath>
#include <limits>

namespace tenon::documents::relay {
namespace {

constexpr double kGreatestHalf = 65504;

std::string shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::End:
      return "the end of the text";
    case Token::Kind::Local:
    case Token::Kind::Graph:
      return concat("'%", token.text, "'");
    case Token::Kind::Global:
      return concat("'@", token.text, "'");
    case Token::Kind::Projection:
      return concat("'.", token.text, "'");
    case Token::Kind::Metadata:
      return "'#[metadata]'";
    default:
      return concat("'", token.text.substr(0, 40), "'");
  }
}

std::int64_t parse_dim(TokenCursor& cursor) {
  if (cursor.take("?")) return RelayType::kAnyExtent;
  const std::optional<std::int64_t> extent =
      cursor.peek().kind == Token::Kind::Number ? parse_integer(cursor.peek().text) : std::nullopt;
  if (!extent) throw cursor.error("an extent is a number or '?'");
  cursor.next();
  return *extent;
}

std::vector<RelayType> parse_types(TokenCursor& cursor) {
  std::vector<RelayType> types;
  cursor.expect("(", "before types");
  while (!cursor.is_sign(")")) {
    types.push_back(parse_type(cursor));
    if (!cursor.take(",")) break;
  }
  cursor.expect(")", "after types");
  return types;
}

RelayType parse_tensor(TokenCursor& cursor) {
  RelayType type;
  cursor.expect("[", "after 'Tensor'");
  cursor.expect("(", "before the extents");
  while (!cursor.is_sign(")")) {
    type.dims.push_back(parse_dim(cursor));
    if (!cursor.take(",")) break;
  }
  cursor.expect(")", "after the extents");
  cursor.expect(",", "before the element type");
  if (cursor.peek().kind != Token::Kind::Word || !is_dtype(cursor.peek().text)) {
    throw cursor.error("this is no element type");
  }
  type.dtype = cursor.next().text;
  cursor.expect("]", "after the element type");
  return type;
}

bool is_like_dtype(std::string_view word) {
  for (const std::string_view start : {"float", "int", "uint", "bfloat", "bool"}) {
    if (word.starts_with(start)) {
      word.remove_prefix(start.size());
      return word.find_first_not_of("0123456789x") == std::string_view::npos;
    }
  }
  return false;
}

AttributeValue integer_literal(TokenCursor& cursor, std::string_view digits,
                               std::string_view suffix, bool is_negative) {
  const std::optional<std::int64_t> value =
      parse_integer((is_negative ? "-" : "") + std::string(digits));
  if (!value) throw cursor.error("a number does not fit in 64 bits, or lacks its suffix");
  const auto fits = [&](auto low, auto high) { return *value >= low && *value <= high; };
  if (suffix == "i16") {
    if (!fits(std::numeric_limits<std::int16_t>::min(), std::numeric_limits<std::int16_t>::max())) {
      throw cursor.error("a number does not fit in its type");
    }
    return {IntegerLiteral{*value, "int16"}};
  }
  const bool is_wide = suffix == "i64" || !fits(std::numeric_limits<std::int32_t>::min(),
                                                std::numeric_limits<std::int32_t>::max());
  return {IntegerLiteral{*value, is_wide ? "int64" : "int32"}};
}

AttributeValue real_literal(TokenCursor& cursor, std::string_view digits, std::string_view suffix,
                            bool is_negative) {
  const std::optional<double> read = parse_real(digits);
  if (!read) throw cursor.error("this is no number");
  const bool is_special = !(digits.front() >= '0' && digits.front() <= '9');
  const std::string dtype = suffix == "f64" ? "float64" : suffix == "f16" ? "float16" : "float32";
  // An attribute is a double regardless of its suffix, so the value keeps full precision.
  const double value = is_negative ? -*read : *read;
  const double limit = dtype == "float64" ? std::numeric_limits<double>::max()
                       : dtype == "float16"
                           ? kGreatestHalf
                           : static_cast<double>(std::numeric_limits<float>::max());
  if (!is_special && !(std::abs(value) <= limit))
    throw cursor.error("a number does not fit in its type");
  return {RealLiteral{value, dtype}};
}

}  // namespace

const Token& TokenCursor::peek() {
  while (tokens_[at_].kind == Token::Kind::Comment) ++at_;
  return tokens_[at_];
}
const Token& TokenCursor::peek_second() {
  peek();
  std::size_t at = at_;
  if (tokens_[at].kind != Token::Kind::End) ++at;
  while (tokens_[at].kind == Token::Kind::Comment) ++at;
  return tokens_[at];
}
const Token& TokenCursor::next() {
  const Token& token = peek();
  if (token.kind != Token::Kind::End) ++at_;
  return token;
}
bool TokenCursor::is_sign(std::string_view sign) {
  return peek().kind == Token::Kind::Sign && peek().text == sign;
}
bool TokenCursor::is_word(std::string_view word) {
  return peek().kind == Token::Kind::Word && peek().text == word;
}
bool TokenCursor::take(std::string_view sign) {
  if (!is_sign(sign)) return false;
  next();
  return true;
}
bool TokenCursor::take_word(std::string_view word) {
  if (!is_word(word)) return false;
  next();
  return true;
}
void TokenCursor::expect(std::string_view sign, std::string_view where) {
  if (!take(sign)) throw error(concat("expected '", sign, "' ", where));
}
const Token* TokenCursor::take_comment() {
  return tokens_[at_].kind == Token::Kind::Comment ? &tokens_[at_++] : nullptr;
}

std::string TokenCursor::place(std::size_t position) const {
  return text_place(source_, text_, position);
}
Error TokenCursor::error(std::string summary) {
  Error error = error_at(position(), std::move(summary));
  error.got(shown(peek()));
  return error;
}
Error TokenCursor::error_at(std::size_t position, std::string summary) const {
  Error error(std::move(summary));
  error.at(place(position));
  return error;
}

TokenCursor::Level::Level(TokenCursor& cursor) : cursor_(cursor) {
  if (cursor.depth_ >= kMaxDepth)
    throw cursor.error(concat("the text nests more than ", kMaxDepth, " deep"));
  ++cursor.depth_;
}

bool is_dtype(std::string_view name) { return to_dtype(name).has_value(); }

RelayType parse_type(TokenCursor& cursor) {
  const TokenCursor::Level level(cursor);
  RelayType type;
  if (cursor.is_sign("(")) {
    type.kind = RelayType::Kind::Tuple;
    type.parts = parse_types(cursor);
    return type;
  }
  if (cursor.peek().kind != Token::Kind::Word) throw cursor.error("expected a type");
  if (cursor.take_word("fn")) {
    type.kind = RelayType::Kind::Function;
    type.parts = parse_types(cursor);
    cursor.expect("->", "before the result of a function type");
    type.parts.push_back(parse_type(cursor));
    return type;
  }
  if (cursor.take_word("Tensor")) return parse_tensor(cursor);
  const std::string_view word = cursor.peek().text;
  if (is_like_dtype(word)) {
    if (!is_dtype(word)) throw cursor.error("this is no element type");
    cursor.next();
    type.dtype = word;
    return type;
  }
  cursor.next();
  if (word == "_") {
    type.kind = RelayType::Kind::Incomplete;
    return type;
  }
  type.kind = RelayType::Kind::Named;
  type.name = word;
  if (cursor.take("[")) {
    do {
      type.parts.push_back(parse_type(cursor));
    } while (cursor.take(","));
    cursor.expect("]", "after the arguments of a type");
  }
  return type;
}

std::string take_balanced(TokenCursor& cursor) {
  const std::size_t begin = cursor.position();
  int depth = 0;
  for (;;) {
    const Token token = cursor.next();
    if (token.kind == Token::Kind::End)
      throw cursor.error_at(begin, "a bracket is not closed before the text ends");
    if (token.kind != Token::Kind::Sign) continue;
    const bool opens = token.text == "(" || token.text == "{" || token.text == "[";
    const bool closes = token.text == ")" || token.text == "}" || token.text == "]";
    depth += opens ? 1 : closes ? -1 : 0;
    if (closes && depth <= 0)
      return std::string(cursor.text().substr(begin, token.position + 1 - begin));
  }
}

bool is_special_real(std::string_view word) {
  if (!word.starts_with("inf") && !word.starts_with("nan")) return false;
  word.remove_prefix(3);
  return word == "f" || word == "f16" || word == "f64";
}

AttributeValue parse_number(TokenCursor& cursor) {
  bool is_negative = false;
  while (cursor.take("-")) is_negative = !is_negative;
  const Token& token = cursor.peek();
  if (token.kind == Token::Kind::Word && is_special_real(token.text)) {
    const AttributeValue value =
        real_literal(cursor, token.text.substr(0, 3), token.text.substr(3), is_negative);
    cursor.next();
    return value;
  }
  if (token.kind != Token::Kind::Number) throw cursor.error("expected a number");
  std::string_view digits = token.text;
  std::string_view suffix;
  for (const std::string_view known : {"i64", "i32", "i16", "i", "f64", "f32", "f16", "f"}) {
    if (digits.ends_with(known)) {
      suffix = known;
      digits.remove_suffix(known.size());
      break;
    }
  }
  const AttributeValue value = suffix.starts_with("f")
                                   ? real_literal(cursor, digits, suffix, is_negative)
                                   : integer_literal(cursor, digits, suffix, is_negative);
  cursor.next();
  return value;
}

AttributeValue parse_attribute_value(TokenCursor& cursor) {
  const TokenCursor::Level level(cursor);
  const Token token = cursor.peek();
  if (token.kind == Token::Kind::Text) {
    const std::optional<std::string> text = unquote(token.text);
    if (!text) throw cursor.error("a text has an escape that nothing means");
    cursor.next();
    return {*text};
  }
  if (cursor.take_word("True")) return {true};
  if (cursor.take_word("False")) return {false};
  if (cursor.take_word("None")) return {NoneLiteral{}};
  if (cursor.is_word("meta")) return {parse_meta_reference(cursor)};
  if (token.kind == Token::Kind::Word && cursor.peek_second().text == "(") {
    cursor.next();
    return {OpaqueText{concat(token.text, take_balanced(cursor))}};
  }
  const std::string_view close = cursor.is_sign("(") ? ")" : "]";
  if (cursor.take("[") || cursor.take("(")) {
    AttributeList list;
    while (!cursor.is_sign(close)) {
      list.push_back(parse_attribute_value(cursor));
      if (!cursor.take(",")) break;
    }
    cursor.expect(close, "after a list");
    return {std::move(list)};
  }
  return parse_number(cursor);
}

MetaReference parse_meta_reference(TokenCursor& cursor) {
  MetaReference reference;
  cursor.next();
  cursor.expect("[", "after 'meta'");
  if (cursor.peek().kind != Token::Kind::Word)
    throw cursor.error("expected the kind of a metadata entry");
  reference.key = cursor.next().text;
  cursor.expect("]", "after the kind of a metadata entry");
  cursor.expect("[", "before the index of a metadata entry");
  const std::optional<std::int64_t> index =
      cursor.peek().kind == Token::Kind::Number ? parse_integer(cursor.peek().text) : std::nullopt;
  if (!index || *index > std::numeric_limits<std::int32_t>::max()) {
    throw cursor.error("expected the index of a metadata entry");
  }
  reference.index = *index;
  cursor.next();
  cursor.expect("]", "after the index of a metadata entry");
  return reference;
}

}  // namespace tenon::documents::relay
