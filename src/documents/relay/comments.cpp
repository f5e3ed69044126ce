#include "documents/relay/comments.h"

#include "base/text.h"

namespace tenon::documents::relay {
namespace {

constexpr std::string_view kTypeMark = "ty=", kSpanMark = "span=";

SourceSpan parse_span(const Token& comment, std::string_view text, const TokenCursor& cursor) {
  const std::size_t column = text.rfind(':');
  const bool has_column = column != std::string_view::npos && column > 0;
  const std::size_t line = has_column ? text.rfind(':', column - 1) : std::string_view::npos;
  std::optional<std::int64_t> line_number, column_number;
  if (line != std::string_view::npos) {
    line_number = parse_integer(text.substr(line + 1, column - line - 1));
    column_number = parse_integer(text.substr(column + 1));
  }
  SourceSpan span;
  if (line_number && column_number)
    span = {single_spaced(text.substr(0, line)), *line_number, *column_number};
  if (span.is_empty())
    throw cursor.error_at(comment.position, "a span is written name:line:column").got(text);
  return span;
}

RelayType parse_claim(const Token& comment, std::string_view text, const TokenCursor& cursor) {
  const auto offset = static_cast<std::size_t>(text.data() - cursor.text().data());
  std::vector<Token> tokens;
  try {
    tokens = tokenize(text, cursor.source());
  } catch (const Error& error) {
    throw cursor.error_at(comment.position, concat("in a type comment: ", error.summary()));
  }
  TokenCursor inner(tokens, cursor.text(), cursor.source(), offset);
  RelayType type = parse_type(inner);
  if (inner.peek().kind != Token::Kind::End)
    throw inner.error("a type comment goes on after its type");
  return type;
}

void claim_type(RelayModule& module, ExprId id, const Token& comment, RelayType type,
                const TokenCursor& cursor) {
  RelayExpr& expr = module.at(id);
  if (expr.type && *expr.type != type) {
    const std::string what =
        expr.kind == RelayExpr::Kind::Constant ? concat("constant ", expr.index) : "an expression";
    throw cursor.error_at(comment.position, what + " has two types")
        .expected(to_string(*expr.type))
        .got(to_string(type));
  }
  if (!expr.type) {
    expr.type = std::move(type);
    expr.type_position = comment.position;
  }
  const bool is_in_document_style = expr.kind == RelayExpr::Kind::Constant ||
                                    expr.kind == RelayExpr::Kind::Scalar ||
                                    expr.kind == RelayExpr::Kind::Call;
  if (!is_in_document_style) module.style = CommentStyle::Later;
  module.type_comments.push_back(comment.position);
}

}  // namespace

std::string single_spaced(std::string_view text) {
  std::string spaced;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space) {
      spaced += c;
    } else if (!spaced.empty() && spaced.back() != ' ') {
      spaced += ' ';
    }
  }
  return std::string(trim(spaced));
}

void attach_comment(RelayModule& module, ExprId id, const Token& comment,
                    const TokenCursor& cursor) {
  std::string_view inside = trim(comment.text);
  RelayExpr& expr = module.at(id);
  const bool has_type = inside.starts_with(kTypeMark);
  if (!has_type && !inside.starts_with(kSpanMark)) {
    // A framework's name does not contain a type: this is a misspelt type comment.
    if (inside.find("Tensor[") != std::string_view::npos) {
      throw cursor.error_at(comment.position, "a comment with a type does not start with 'ty='")
          .got(inside.substr(0, 40));
    }
    if (expr.kind == RelayExpr::Kind::Call && expr.span.is_empty())
      expr.span.name = single_spaced(inside);
    return;
  }
  const std::size_t span = has_type ? inside.rfind(" span=") : 0;
  if (span != std::string_view::npos) {
    expr.span =
        parse_span(comment, inside.substr(span + (has_type ? 1 : 0) + kSpanMark.size()), cursor);
    module.style = CommentStyle::Later;
    inside = inside.substr(0, span);
  }
  if (has_type)
    claim_type(module, id, comment, parse_claim(comment, inside.substr(kTypeMark.size()), cursor),
               cursor);
}

}  // namespace tenon::documents::relay
