#include "frontends/numpy/npy_header.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <string_view>

namespace tenon::frontends::numpy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxRank = 64;
constexpr std::size_t kMaxHeaderBytes = 1 << 20;
constexpr std::size_t kAlignment = 64;

struct NumpyType {
  DType dtype;
  char kind;
  std::size_t item_bytes;
};
constexpr NumpyType numpy_types[] = {
    {DType::Bool, 'b', 1}, {DType::I8, 'i', 1},    {DType::I16, 'i', 2}, {DType::I32, 'i', 4},
    {DType::I64, 'i', 8},  {DType::U8, 'u', 1},    {DType::U16, 'u', 2}, {DType::U32, 'u', 4},
    {DType::U64, 'u', 8},  {DType::F16, 'f', 2},   {DType::F32, 'f', 4}, {DType::F64, 'f', 8},
    {DType::C64, 'c', 8},  {DType::C128, 'c', 16},
};

Error bad_header(std::string_view what) {
  return Error(concat("npy: ", what))
      .expected("a header like {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
}

NpyFormat parse_format(const std::string& description) {
  std::string_view rest = description;
  NpyFormat format;
  if (!rest.empty() && std::string_view("<>=|").find(rest.front()) != std::string_view::npos) {
    format.is_big_endian = rest.front() == '>';
    rest.remove_prefix(1);
  }
  if (rest.empty()) throw bad_header("the element type is empty");
  format.kind = rest.front();
  rest.remove_prefix(1);
  if (format.kind == '?' && rest.empty()) return {'b', 1, false};
  if (format.kind == 'O') {
    throw Error("npy: the array holds Python objects", ErrorKind::Unsupported)
        .hint("save it with a numeric dtype");
  }
  const std::optional<std::int64_t> width = parse_integer(rest);
  if (std::string_view("biufcSUV").find(format.kind) == std::string_view::npos || !width ||
      *width < 0 || *width > kMaxExtent) {
    throw Error("npy: no known element type", ErrorKind::Unsupported).got(quote(description));
  }
  // The width of a text is in characters, and NumPy's take four bytes each.
  format.item_bytes = static_cast<std::size_t>(*width) * (format.kind == 'U' ? 4 : 1);
  return format;
}

/// Parses the header, a Python dictionary with three known keys.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  NpyHeader header() {
    NpyHeader header;
    bool has_format = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = text();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') {
          throw Error("npy: the array holds records of several fields", ErrorKind::Unsupported);
        }
        header.format = parse_format(text());
        has_format = true;
      } else if (key == "fortran_order") {
        header.is_fortran_order = truth();
        has_order = true;
      } else if (key == "shape") {
        header.shape = shape();
        has_shape = true;
      } else {
        throw bad_header(concat("unknown key ", quote(key)));
      }
      if (!take(',') && peek() != '}') throw bad_header("a ',' is missing in the header");
    }
    if (!has_format || !has_order || !has_shape) throw bad_header("the header is incomplete");
    return header;
  }

 private:
  char peek() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw bad_header(concat("'", std::string(1, c), "' is missing in the header"));
  }
  std::string text() {
    const char mark = peek();
    if (mark != '\'' && mark != '"') throw bad_header("a quoted text is missing in the header");
    rest_.remove_prefix(1);
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) throw bad_header("a quoted text does not end");
    std::string found(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return found;
  }
  bool truth() {
    peek();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(std::string_view(word).size());
      return value;
    }
    throw bad_header("fortran_order is neither True nor False");
  }
  Shape shape() {
    Shape extents;
    expect('(');
    while (!take(')')) {
      peek();
      std::size_t digits = 0;
      while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') ++digits;
      const std::optional<std::int64_t> extent = parse_integer(rest_.substr(0, digits));
      if (!extent) throw bad_header("an extent is not a number");
      rest_.remove_prefix(digits);
      take('L');  // Python 2's suffix of long integers
      extents.push_back(*extent);
      if (extents.size() > kMaxRank) throw bad_header("the array has more than 64 axes");
      if (!take(',') && peek() != ')') throw bad_header("a ',' is missing in the shape");
    }
    return extents;
  }

  std::string_view rest_;
};

}  // namespace

NpyHeader read_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 4) {
    throw Error("npy: not a NumPy array").expected("a file that starts with \\x93NUMPY");
  }
  const int version = text[kMagic.size()];
  if (version < 1 || version > 3) {
    throw Error("npy: unknown version of the format", ErrorKind::Unsupported).got(version);
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t start = kMagic.size() + 2 + length_bytes;
  if (text.size() < start) throw Error("npy: the file ends inside its header");
  std::size_t length = 0;
  for (std::size_t k = length_bytes; k-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(text[kMagic.size() + 2 + k]);
  }
  if (length > text.size() - start) throw Error("npy: the file ends inside its header");
  if (length > kMaxHeaderBytes) throw bad_header("the header is too long");
  NpyHeader header = Literal(text.substr(start, length)).header();
  header.data_offset = start + length;
  return header;
}

std::string write_header(const std::string& description, const Shape& shape) {
  std::string extents;
  for (std::int64_t extent : shape) extents += concat(extents.empty() ? "" : ", ", extent);
  if (shape.size() == 1) extents += ",";
  std::string text =
      concat("{'descr': '", description, "', 'fortran_order': False, 'shape': (", extents, "), }");
  const bool is_long = text.size() > 60000;
  const std::size_t before = kMagic.size() + 2 + (is_long ? 4 : 2);
  const std::size_t total = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.append(total - before - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += is_long ? '\2' : '\1';
  header += '\0';
  for (std::size_t k = 0; k < (is_long ? 4u : 2u); ++k) {
    header += static_cast<char>(text.size() >> (8 * k));
  }
  return header + text;
}

std::optional<DType> dtype_of(const NpyFormat& format) {
  for (const NumpyType& type : numpy_types) {
    if (type.kind == format.kind && type.item_bytes == format.item_bytes) return type.dtype;
  }
  return std::nullopt;
}

std::optional<std::string> description_of(DType dtype) {
  for (const NumpyType& type : numpy_types) {
    if (type.dtype != dtype) continue;
    return concat(type.item_bytes == 1 ? "|" : "<", std::string(1, type.kind), type.item_bytes);
  }
  return std::nullopt;
}

}  // namespace tenon::frontends::numpy
