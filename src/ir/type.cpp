#include "ir/type.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/text_cursor.h"

namespace tenon::inline ir {

namespace {

constexpr int kMaxNesting = 64;

DType parse_dtype(TextCursor& cursor) {
  const std::string_view name = cursor.accept_identifier();
  if (const auto dtype = tenon::parse_dtype(name)) return *dtype;
  std::vector<std::string> known = {"seq", "optional"};
  for (const DTypeInfo& row : all_dtypes()) known.emplace_back(row.name);
  cursor.position -= name.size();
  cursor.fail(concat("a dtype, seq(…), optional(…) or ?; ", suggest_name(name, known)));
}

Layout parse_layout(TextCursor& cursor) {
  const auto is_part = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  const std::size_t begin = cursor.position;
  while (cursor.position < cursor.text.size() && is_part(cursor.text[cursor.position])) {
    ++cursor.position;
  }
  if (cursor.position == begin) cursor.fail("a layout after '@'");
  return Layout(std::string(cursor.text.substr(begin, cursor.position - begin)));
}

TensorType parse_tensor_type(TextCursor& cursor, const SymbolRanges& ranges) {
  TensorType type;
  type.dtype = parse_dtype(cursor);
  cursor.expect('[');
  if (!cursor.accept(']')) {
    do type.dims.push_back(parse_dim(cursor, ranges));
    while (cursor.accept(','));
    if (!cursor.accept(']')) cursor.fail("',' or ']'");
  }
  // Only directly after the brackets: `@` elsewhere belongs to the caller's syntax.
  if (cursor.position < cursor.text.size() && cursor.text[cursor.position] == '@') {
    ++cursor.position;
    type.layout = parse_layout(cursor);
    if (type.layout.rank() != type.rank()) {
      throw Error(concat("layout ", type.layout.text(), " does not fit the extents"))
          .expected("rank ", type.layout.rank())
          .got(type);
    }
  }
  return type;
}

Type parse_nested(TextCursor& cursor, const SymbolRanges& ranges, int depth) {
  if (depth > kMaxNesting) cursor.fail("at most 64 nested types");
  if (cursor.accept('?')) return {};
  const std::size_t begin = cursor.position;
  const std::string_view word = cursor.accept_identifier();
  if ((word == "seq" || word == "optional") && cursor.accept('(')) {
    Type element = parse_nested(cursor, ranges, depth + 1);
    cursor.expect(')');
    return word == "seq" ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
  }
  cursor.position = begin;
  return parse_tensor_type(cursor, ranges);
}

}  // namespace

Dim element_count(const TensorType& type) { return product(type.dims); }

Dim byte_count(const TensorType& type) {
  const int bits = info(type.dtype).bits;
  const Dim count = element_count(type);
  return bits % 8 == 0 ? count * Dim(bits / 8) : ceil_div(count * Dim(bits), 8);
}

std::string to_string(const TensorType& type) {
  std::string text = to_string(type.dtype) + to_string(type.dims);
  if (!type.layout.is_empty()) text += "@" + type.layout.text();
  return text;
}

Type Type::sequence(Type element) {
  Type type;
  type.kind_ = Kind::Sequence;
  type.element_ = std::make_shared<const Type>(std::move(element));
  return type;
}

Type Type::optional(Type element) {
  Type type = sequence(std::move(element));
  type.kind_ = Kind::Optional;
  return type;
}

const TensorType& Type::tensor() const {
  TENON_ASSERT(is_tensor(), "the value is a tensor");
  return tensor_;
}

TensorType& Type::tensor() {
  TENON_ASSERT(is_tensor(), "the value is a tensor");
  return tensor_;
}

const Type& Type::element() const {
  TENON_ASSERT(element_ != nullptr, "the value is a sequence or optional");
  return *element_;
}

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == Kind::Tensor) return tensor_ == other.tensor_;
  return element_ == other.element_ || (element_ && other.element_ && *element_ == *other.element_);
}

std::string to_string(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::Unknown:
      return "?";
    case Type::Kind::Tensor:
      return to_string(type.tensor());
    case Type::Kind::Sequence:
      return "seq(" + to_string(type.element()) + ")";
    case Type::Kind::Optional:
      return "optional(" + to_string(type.element()) + ")";
  }
  return "?";
}

Type substitute(const Type& type, const DimBindings& values) {
  switch (type.kind()) {
    case Type::Kind::Unknown:
      break;
    case Type::Kind::Tensor: {
      TensorType tensor = type.tensor();
      tensor.dims = substitute(tensor.dims, values);
      return tensor;
    }
    case Type::Kind::Sequence:
      return Type::sequence(substitute(type.element(), values));
    case Type::Kind::Optional:
      return Type::optional(substitute(type.element(), values));
  }
  return type;
}

Type parse_type(TextCursor& cursor, const SymbolRanges& ranges) {
  return parse_nested(cursor, ranges, 0);
}

Type parse_type(std::string_view text, const SymbolRanges& ranges) {
  TextCursor cursor{text, "type"};
  Type type = parse_type(cursor, ranges);
  if (!cursor.is_at_end()) cursor.fail("the end of the type");
  return type;
}

}  // namespace tenon::inline ir
