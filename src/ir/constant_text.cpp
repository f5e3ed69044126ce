#include "ir/constant_text.h"

#include "base/text.h"
#include "ir/element_text.h"
#include "ir/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace tenon::inline ir {
namespace {

constexpr std::int64_t kMaxListed = 64;  // larger constants print as base64
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void append_base64(std::string& out, std::span<const std::byte> bytes) {
  const std::size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4, '=');
  char* digit = out.data() + start;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k <= count; ++k) digit[k] = kDigits[group >> (18 - 6 * k) & 63];
    digit += 4;
  }
}

constexpr std::array<std::int8_t, 256> kDigitValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

// Decodes exactly `bytes.size()` bytes; returns false for text of any other length or content.
bool read_base64(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != (bytes.size() + 2) / 3 * 4) return false;
  for (std::size_t i = 0, at = 0; i < bytes.size(); i += 3, at += 4) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::int8_t value = kDigitValues[static_cast<unsigned char>(text[at + k])];
      if (k <= count ? value < 0 : text[at + k] != '=') return false;
      group = group << 6 | static_cast<std::uint32_t>(std::max<std::int8_t>(value, 0));
    }
    for (std::size_t k = 0; k < count; ++k) {
      bytes[i + k] = static_cast<std::byte>(group >> (16 - 8 * k) & 255);
    }
  }
  return true;
}

void append_element(std::string& out, const Tensor& tensor, std::int64_t index) {
  if (tensor.dtype() == DType::String) {
    out += quote(tensor.strings()[static_cast<std::size_t>(index)]);
    return;
  }
  const std::size_t width = info(tensor.dtype()).storage_bytes;
  const std::byte* element = tensor.bytes().data() + static_cast<std::size_t>(index) * width;
  const DType part = component_of(tensor.dtype());
  if (!is_complex(tensor.dtype())) return append_number(out, part, element);
  out += '(';
  append_number(out, part, element);
  out += ", ";
  append_number(out, part, element + width / 2);
  out += ')';
}

void append_dense(std::string& out, const Tensor& tensor) {
  if (tensor.size() > kMaxListed && tensor.dtype() != DType::String) {
    out += "base64 \"";
    append_base64(out, tensor.bytes());
    out += '"';
    return;
  }
  if (tensor.rank() == 0) return append_element(out, tensor, 0);
  out += '[';
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (i > 0) out += ", ";
    append_element(out, tensor, i);
  }
  out += ']';
}

void append_fill(std::string& out, const Constant& constant, std::string_view words[3]) {
  out += concat(words[0], "(seed = ", constant.seed(), ", ", words[1], " = ",
                format_real(constant.first()), ", ", words[2], " = ",
                format_real(constant.second()), ")");
}

/// Reads the payload of a constant, which follows its type.
class PayloadReader {
 public:
  PayloadReader(Lexer& lexer, DType dtype, Shape shape)
      : lexer_(lexer),
        dtype_(dtype),
        shape_(std::move(shape)),
        count_(checked_element_count(shape_)) {}

  Constant read() {
    if (lexer_.peek() == '[') return dense_list();
    if (lexer_.take_word("base64")) return dense_base64();
    if (lexer_.take_word("splat")) {
      return Constant::splat(scalar(), std::move(shape_));
    }
    if (lexer_.take_word("normal")) {
      read_fill("mean", "deviation");
      return Constant::normal(dtype_, std::move(shape_), seed_, first_, second_);
    }
    if (lexer_.take_word("uniform")) {
      read_fill("low", "high");
      return Constant::uniform(dtype_, std::move(shape_), seed_, first_, second_);
    }
    if (shape_.empty()) return scalar();
    throw lexer_.error_here("expected the constant's elements")
        .expected("[…], splat …, base64 \"…\", normal(…) or uniform(…)");
  }

  /// Reads dense elements.
  Tensor read_stored() {
    const std::size_t start = lexer_.position();
    const Constant constant = read();
    if (constant.kind() == Constant::Kind::Dense) return constant.stored();
    throw lexer_.error_at(start, "factors are written out").expected("[…] or base64 \"…\"");
  }

 private:
  void read_number_into(DType dtype, std::byte* element) {
    const std::size_t start = lexer_.position();
    const std::string_view text = lexer_.number();
    if (const auto problem = read_number(text, dtype, element)) {
      lexer_.seek(start);
      throw lexer_.error_here(*problem);
    }
  }

  void read_element_into(std::byte* element) {
    const DType part = component_of(dtype_);
    if (!is_complex(dtype_)) return read_number_into(part, element);
    lexer_.expect('(', "before the real part");
    read_number_into(part, element);
    lexer_.expect(',', "after the real part");
    read_number_into(part, element + info(part).storage_bytes);
    lexer_.expect(')', "after the imaginary part");
  }

  Tensor scalar() {
    if (dtype_ == DType::String) return Tensor::of_strings({}, {lexer_.text("an element")});
    Tensor tensor(dtype_, {});
    read_element_into(tensor.mutable_bytes().data());
    return tensor;
  }

  Error wrong_count(std::size_t position, std::string got) const {
    return lexer_.error_at(position, "the number of elements does not match the type")
        .expected(count_)
        .got(got);
  }

  // Allocates memory only for elements that the remaining text can hold.
  void require_text_for_elements(std::size_t position) const {
    if (static_cast<std::uint64_t>(count_) > lexer_.remaining())
      throw wrong_count(position, "fewer");
  }

  template <class ReadOne>
  void read_list(ReadOne read_one) {
    const std::size_t start = lexer_.position();
    lexer_.expect('[', "before the elements");
    std::int64_t read = 0;
    for (; !lexer_.take(']'); ++read) {
      if (read > 0) lexer_.expect(',', "or ']' after an element");
      if (read == count_) throw wrong_count(start, "more");
      read_one(static_cast<std::size_t>(read));
    }
    if (read != count_) throw wrong_count(start, std::to_string(read));
  }

  Constant dense_list() {
    require_text_for_elements(lexer_.position());
    if (dtype_ == DType::String) {
      std::vector<std::string> strings;
      read_list([&](std::size_t) { strings.push_back(lexer_.text("an element")); });
      return Tensor::of_strings(std::move(shape_), std::move(strings));
    }
    Tensor tensor(dtype_, shape_);
    std::byte* const elements = tensor.mutable_bytes().data();
    const std::size_t width = info(dtype_).storage_bytes;
    read_list([&](std::size_t index) { read_element_into(elements + index * width); });
    return tensor;
  }

  Constant dense_base64() {
    const std::size_t start = lexer_.position();
    require_text_for_elements(start);
    const std::string_view text = lexer_.plain_text("the elements");
    if (dtype_ == DType::String) throw lexer_.error_at(start, "strings are written as a list");
    const std::size_t byte_count = static_cast<std::size_t>(count_) * info(dtype_).storage_bytes;
    if (text.size() / 4 != (byte_count + 2) / 3) {
      throw wrong_count(start, concat(text.size(), " characters"))
          .expected(count_, " elements in ", (byte_count + 2) / 3 * 4, " characters");
    }
    Tensor tensor(dtype_, std::move(shape_));
    const std::span<std::byte> bytes = tensor.mutable_bytes();
    if (!read_base64(text, bytes)) throw lexer_.error_at(start, "the text is not base64");
    const bool is_valid = info(dtype_).storage_bytes != 1 ||
                          std::all_of(bytes.begin(), bytes.end(), [&](std::byte element) {
                            return is_valid_element(dtype_, element);
                          });
    if (!is_valid) throw lexer_.error_at(start, concat("an element is no ", dtype_));
    return tensor;
  }

  void read_fill(std::string_view first, std::string_view second) {
    lexer_.expect('(', "before the seed");
    label("seed");
    const std::size_t start = lexer_.position();
    const std::string_view text = lexer_.number();
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed_);
    if (failure != std::errc{} || end != text.data() + text.size()) {
      lexer_.seek(start);
      throw lexer_.error_here("expected a seed: an integer that is not negative");
    }
    lexer_.expect(',', "after the seed");
    label(first);
    first_ = lexer_.real("a number");
    lexer_.expect(',', "after a number");
    label(second);
    second_ = lexer_.real("a number");
    lexer_.expect(')', "after a number");
  }

  void label(std::string_view word) {
    if (!lexer_.take_word(word)) throw lexer_.error_here(concat("expected '", word, " = …'"));
    lexer_.expect('=', concat("after '", word, "'"));
  }

  Lexer& lexer_;
  DType dtype_;
  Shape shape_;
  std::int64_t count_;
  std::uint64_t seed_ = 0;
  double first_ = 0, second_ = 0;
};

PayloadReader payload_reader(Lexer& lexer) {
  const std::size_t start = lexer.position();
  const Type type = lexer.type({});
  if (!type.is_tensor() || !all_constant(type.tensor().dims) || !type.tensor().layout.is_empty()) {
    throw lexer.error_at(start, "a constant is a tensor of known extents, without a layout")
        .got(type);
  }
  return {lexer, type.tensor().dtype, constants(type.tensor().dims)};
}

}  // namespace

void append_constant(std::string& out, const Constant& constant) {
  if (constant.kind() == Constant::Kind::Scaled) {
    append_constant(out, constant.base());
    out += " * ";
    return append_constant(out, Constant(constant.factors()));
  }
  out += to_string(constant.type());
  out += ' ';
  std::string_view normal[] = {"normal", "mean", "deviation"};
  std::string_view uniform[] = {"uniform", "low", "high"};
  switch (constant.kind()) {
    case Constant::Kind::Dense:
      return append_dense(out, constant.stored());
    case Constant::Kind::Splat:
      out += "splat ";
      return append_element(out, constant.stored(), 0);
    case Constant::Kind::Normal:
      return append_fill(out, constant, normal);
    case Constant::Kind::Uniform:
      return append_fill(out, constant, uniform);
    case Constant::Kind::Scaled:
      break;  // handled above
  }
}

Constant read_constant(Lexer& lexer) {
  const std::size_t start = lexer.position();
  try {
    Constant constant = payload_reader(lexer).read();
    if (!lexer.take('*')) return constant;
    return Constant::scaled(std::move(constant), payload_reader(lexer).read_stored());
  } catch (Error& error) {
    if (!error.has_place()) error.at(lexer.place(start));
    throw;
  }
}

std::string print(const Constant& constant) {
  std::string out;
  append_constant(out, constant);
  return out;
}

Constant parse_constant(std::string_view text) {
  Lexer lexer(text, "constant");
  Constant constant = read_constant(lexer);
  if (!lexer.is_at_end()) throw lexer.error_here("expected nothing after the constant");
  return constant;
}

}  // namespace tenon::inline ir
