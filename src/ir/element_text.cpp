#include "ir/element_text.h"

#include "base/error.h"
#include "ir/float_formats.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tenon::inline ir {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are stored as they are printed");

// Returns the element's storage as the low bits of a word.
std::uint64_t load_bits(DType dtype, const std::byte* element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, info(dtype).storage_bytes);
  return bits;
}

void store_bits(DType dtype, std::uint64_t bits, std::byte* element) {
  std::memcpy(element, &bits, info(dtype).storage_bytes);
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && dtype != DType::F64 && dtype != DType::F32;
}

float narrow_value(DType dtype, std::uint64_t bits) {
  if (dtype == DType::F16) return f16_to_f32(static_cast<std::uint16_t>(bits));
  if (dtype == DType::BF16) return bf16_to_f32(static_cast<std::uint16_t>(bits));
  return narrow_float_to_f32(dtype, static_cast<std::uint8_t>(bits));
}

std::uint64_t narrow_bits(DType dtype, float value) {
  if (dtype == DType::F16) return f32_to_f16(value);
  if (dtype == DType::BF16) return f32_to_bf16(value);
  const Overflow overflow = std::isinf(value) ? Overflow::Special : Overflow::Saturate;
  return f32_to_narrow_float(dtype, value, overflow);
}

double float_value(DType dtype, std::uint64_t bits) {
  if (dtype == DType::F64) return std::bit_cast<double>(bits);
  if (dtype == DType::F32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return narrow_value(dtype, bits);
}

// `from_chars` reports numbers that underflow to zero as out of range, like those that overflow.
template <class Real>
std::optional<Real> parse_rounded(std::string_view text) {
  Real value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (failure == std::errc::result_out_of_range) {
    const std::string terminated(text);
    if constexpr (sizeof(Real) == 8) return std::strtod(terminated.c_str(), nullptr);
    return std::strtof(terminated.c_str(), nullptr);
  }
  return failure == std::errc{} ? std::optional(value) : std::nullopt;
}

template <class Real>
std::optional<std::uint64_t> bits_of_decimal(std::string_view text, DType dtype) {
  const std::optional<Real> value = parse_rounded<Real>(text);
  if (!value) return std::nullopt;
  if constexpr (sizeof(Real) == 8) {
    return std::bit_cast<std::uint64_t>(*value);
  } else {
    return is_narrow_float(dtype) ? narrow_bits(dtype, *value)
                                  : std::bit_cast<std::uint32_t>(*value);
  }
}

std::optional<std::string> read_float(std::string_view text, DType dtype, std::uint64_t& bits) {
  const auto read = dtype == DType::F64 ? bits_of_decimal<double>(text, dtype)
                                        : bits_of_decimal<float>(text, dtype);
  if (!read) return "expected a number";
  const std::string_view size = text.starts_with('-') ? text.substr(1) : text;
  const bool is_special = size == "inf" || size == "nan";
  if (!is_special && !size.empty() && (size[0] < '0' || size[0] > '9') && size[0] != '.') {
    return "expected a number";  // `infinity`, `nan(…)`: other forms that from_chars accepts
  }
  const double value = float_value(dtype, *read);
  // Rounding up to infinity or saturating changes the written number by more than rounding does.
  const bool fits =
      size == "inf"   ? std::isinf(value)
      : size == "nan" ? std::isnan(value)
                      : std::isfinite(value) && std::abs(parse_rounded<double>(size).value_or(0)) <
                                                    highest_finite(dtype) * 1.125;
  if (!fits) return concat(dtype, " cannot hold ", text);
  bits = *read;
  return std::nullopt;
}

template <class Integer>
std::optional<Integer> parse_whole(std::string_view text) {
  Integer value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> read_integer(std::string_view text, DType dtype, std::uint64_t& bits) {
  if (info(dtype).arithmetic == Arithmetic::Signed) {
    const auto value = parse_whole<std::int64_t>(text);
    const auto highest = static_cast<std::int64_t>(highest_integer(dtype));
    if (!value) return "expected an integer";
    if (*value < lowest_integer(dtype) || *value > highest)
      return concat(dtype, " cannot hold ", text);
    bits = static_cast<std::uint64_t>(*value);
    return std::nullopt;
  }
  const auto value = parse_whole<std::uint64_t>(text);
  if (!value) return "expected an integer that is not negative";
  if (*value > highest_integer(dtype)) return concat(dtype, " cannot hold ", text);
  bits = *value;
  return std::nullopt;
}

std::optional<std::string> read_hex(std::string_view digits, DType dtype, std::uint64_t& bits) {
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (failure != std::errc{} || end != digits.data() + digits.size()) {
    return "expected bits in hex";
  }
  const std::size_t width = 8 * info(dtype).storage_bytes;
  const bool fits = (width == 64 || bits >> width == 0) &&
                    is_valid_element(dtype, static_cast<std::byte>(bits & 0xff));
  if (!fits) return concat("more bits than ", dtype, " has");
  return std::nullopt;
}

void append_hex(std::string& out, std::uint64_t bits) {
  std::array<char, 16> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), bits, 16);
  out += "0x";
  out.append(buffer.data(), end.ptr);
}

template <class Number, class... Format>
std::string_view decimal(std::array<char, 64>& buffer, Number value, Format... format) {
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...);
  return {buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data())};
}

// Prints the fewest digits that read back: 0.1 instead of the digits that an f32 would need.
std::string_view half_decimal(std::array<char, 64>& buffer, DType dtype, float value,
                              std::uint64_t bits) {
  const bool is_whole = value == std::trunc(value) && std::abs(value) < 0x1p24f;
  for (int digits = 1; digits < 9 && !is_whole; ++digits) {
    const std::string_view text = decimal(buffer, value, std::chars_format::general, digits);
    std::uint64_t read = 0;
    if (!read_float(text, dtype, read) && read == bits) return text;
  }
  return decimal(buffer, value);
}

void append_float(std::string& out, DType dtype, std::uint64_t bits) {
  const double value = float_value(dtype, bits);
  std::array<char, 64> buffer;
  std::string_view text = "nan";
  if (!std::isnan(value)) {
    const bool is_half = dtype == DType::F16 || dtype == DType::BF16;
    text = dtype == DType::F64 ? decimal(buffer, value)
           : is_half           ? half_decimal(buffer, dtype, static_cast<float>(value), bits)
                               : decimal(buffer, static_cast<float>(value));
  }
  std::uint64_t read = 0;
  if (!read_float(text, dtype, read) && read == bits) {
    out += text;
  } else {
    append_hex(out, bits);
  }
}

}  // namespace

DType component_of(DType dtype) {
  return dtype == DType::C64 ? DType::F32 : dtype == DType::C128 ? DType::F64 : dtype;
}

void append_number(std::string& out, DType dtype, const std::byte* element) {
  const std::uint64_t bits = load_bits(dtype, element);
  if (is_float(dtype)) return append_float(out, dtype, bits);
  if (dtype == DType::Bool) {
    out += bits != 0 ? "true" : "false";
    return;
  }
  std::array<char, 64> buffer;
  if (info(dtype).arithmetic == Arithmetic::Signed) {
    const auto unused = static_cast<int>(64 - 8 * info(dtype).storage_bytes);
    out += decimal(buffer, static_cast<std::int64_t>(bits << unused) >> unused);
  } else {
    out += decimal(buffer, bits);
  }
}

std::optional<std::string> read_number(std::string_view text, DType dtype, std::byte* element) {
  std::uint64_t bits = 0;
  std::optional<std::string> problem;
  if (dtype == DType::Bool) {
    bits = text == "true" || text == "1";
    if (!bits && text != "false" && text != "0") problem = "expected true or false";
  } else if (text.starts_with("0x")) {
    problem = read_hex(text.substr(2), dtype, bits);
  } else {
    problem = is_float(dtype) ? read_float(text, dtype, bits) : read_integer(text, dtype, bits);
  }
  if (!problem) store_bits(dtype, bits, element);
  return problem;
}

bool is_valid_element(DType dtype, std::byte element) {
  const auto code = std::to_integer<unsigned>(element);
  if (dtype == DType::Bool) return code <= 1;
  if (dtype == DType::F4E2M1) return code <= 0x0f;
  if (!is_integer(dtype) || info(dtype).bits >= 8) return true;
  if (info(dtype).arithmetic == Arithmetic::Unsigned) return code <= highest_integer(dtype);
  const auto value = static_cast<std::int8_t>(code);
  return value >= lowest_integer(dtype) &&
         value <= static_cast<std::int64_t>(highest_integer(dtype));
}

}  // namespace tenon::inline ir
