#include "ir/element_access.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/float_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace tenon::inline ir::elements {

namespace {

std::int64_t truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

std::uint64_t truncated_unsigned(double value) {
  if (value >= 0x1p64) return std::numeric_limits<std::uint64_t>::max();
  if (value >= 0x1p63) return static_cast<std::uint64_t>(value);
  return static_cast<std::uint64_t>(truncated(value));
}

/// Converts to f32 by rounding to odd (truncation with the last bit set if inexact), so that a
/// second rounding to a narrower float gives the same result as rounding the double directly.
float to_odd_float(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

/// Converts to double. An inexact result keeps a sticky bit far below a narrow float's last place.
double to_sticky_double(std::int64_t value, bool is_unsigned) {
  const bool is_negative = !is_unsigned && value < 0;
  auto size = static_cast<std::uint64_t>(value);
  if (is_negative) size = -size;
  if (size >> 53) size = (size & ~std::uint64_t{0xfff}) | (size & 0xfff ? 0x1000 : 0);
  return is_negative ? -static_cast<double>(size) : static_cast<double>(size);
}

template <int Bits>
std::int8_t sign_extended(std::int64_t value) {
  const auto shifted = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) << (8 - Bits));
  return static_cast<std::int8_t>(static_cast<std::int8_t>(shifted) >> (8 - Bits));
}

/// Calls `use` with a value of the dtype's storage type and a function that converts it to a
/// number.
template <class Use>
void with_reader(DType dtype, Use use) {
  const auto same = [](auto value) { return value; };
  const auto narrow = [dtype](std::uint8_t bits) { return narrow_float_to_f32(dtype, bits); };
  switch (dtype) {
    case DType::F64:
      return use(double{}, same);
    case DType::F32:
      return use(float{}, same);
    case DType::F16:
      return use(std::uint16_t{}, f16_to_f32);
    case DType::BF16:
      return use(std::uint16_t{}, bf16_to_f32);
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
    case DType::F8E8M0:
    case DType::F4E2M1:
      return use(std::uint8_t{}, narrow);
    case DType::I64:
      return use(std::int64_t{}, same);
    case DType::I32:
      return use(std::int32_t{}, same);
    case DType::I16:
      return use(std::int16_t{}, same);
    case DType::I8:
    case DType::I4:
    case DType::I2:
      return use(std::int8_t{}, same);
    case DType::U64:
      return use(std::uint64_t{}, same);
    case DType::U32:
      return use(std::uint32_t{}, same);
    case DType::U16:
      return use(std::uint16_t{}, same);
    case DType::U8:
    case DType::U4:
    case DType::U2:
      return use(std::uint8_t{}, same);
    case DType::Bool:
      return use(std::uint8_t{}, [](std::uint8_t value) { return value != 0 ? 1 : 0; });
    case DType::C64:
      return use(std::complex<float>{}, [](auto value) { return value.real(); });
    case DType::C128:
      return use(std::complex<double>{}, [](auto value) { return value.real(); });
    case DType::String:
      break;
  }
  TENON_ASSERT(dtype != DType::String, "strings are read by load_texts");
}

template <class Stored, class Value, class Convert>
void store_each(std::span<const Value> values, std::byte* data, Convert convert) {
  auto* stored = reinterpret_cast<Stored*>(data);
  for (std::size_t i = 0; i < values.size(); ++i) {
    stored[i] = static_cast<Stored>(convert(values[i]));
  }
}

/// Stores `to_integer` of each value to an integer dtype (or bool).
template <class Value, class ToInteger>
void store_wrapped(DType dtype, std::span<const Value> values, std::byte* data,
                   ToInteger to_integer) {
  switch (info(dtype).storage_bytes) {
    case 8:
      return store_each<std::int64_t>(values, data, to_integer);
    case 4:
      return store_each<std::int32_t>(values, data, to_integer);
    case 2:
      return store_each<std::int16_t>(values, data, to_integer);
    default:
      break;
  }
  switch (dtype) {
    case DType::I4:
      return store_each<std::int8_t>(values, data,
                                     [&](Value v) { return sign_extended<4>(to_integer(v)); });
    case DType::I2:
      return store_each<std::int8_t>(values, data,
                                     [&](Value v) { return sign_extended<2>(to_integer(v)); });
    case DType::U4:
      return store_each<std::uint8_t>(values, data, [&](Value v) { return to_integer(v) & 15; });
    case DType::U2:
      return store_each<std::uint8_t>(values, data, [&](Value v) { return to_integer(v) & 3; });
    default:
      return store_each<std::int8_t>(values, data, to_integer);
  }
}

/// Stores to a float narrower than f32 through an f32 that rounds like the value itself.
template <class Value, class ToFloat>
void store_narrow(DType dtype, std::span<const Value> values, std::byte* data, ToFloat to_float) {
  switch (dtype) {
    case DType::F16:
      return store_each<std::uint16_t>(values, data,
                                       [&](Value v) { return f32_to_f16(to_float(v)); });
    case DType::BF16:
      return store_each<std::uint16_t>(values, data,
                                       [&](Value v) { return f32_to_bf16(to_float(v)); });
    default:
      return store_each<std::uint8_t>(
          values, data, [&](Value v) { return f32_to_narrow_float(dtype, to_float(v)); });
  }
}

[[noreturn]] void throw_no_number(const std::string& text) {
  throw Error("cannot read a string as a number")
      .expected("a number as in 12, 3.14 or 1e-5, or NaN, INF, -INF")
      .got(quote(text.size() <= 80 ? text : text.substr(0, 80)));
}

double real_of(const std::string& text) {
  std::string_view trimmed = trim(text);
  const bool is_signed = trimmed.starts_with('-') || trimmed.starts_with('+');
  // from_chars would also accept "infinity" and "nan(...)".
  const auto word = is_signed ? trimmed.substr(1) : trimmed;
  const bool is_word = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0]));
  const auto value = is_word && word.size() != 3 ? std::nullopt : parse_real(trimmed);
  if (!value) throw_no_number(text);
  return *value;
}

std::int64_t integer_of(const std::string& text) {
  const std::string_view trimmed = trim(text);
  if (const auto value = parse_integer(trimmed)) return *value;
  std::uint64_t bits = 0;
  const auto end = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), bits);
  if (end.ec == std::errc() && end.ptr == trimmed.data() + trimmed.size()) {
    return static_cast<std::int64_t>(bits);
  }
  return truncated(real_of(text));
}

template <class T>
std::string general_text(T value, int precision) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  std::array<char, 64> buffer;
  char* const last = buffer.data() + buffer.size();
  const auto end =
      precision == 0
          ? std::to_chars(buffer.data(), last, value, std::chars_format::general)
          : std::to_chars(buffer.data(), last, value, std::chars_format::general, precision);
  return {buffer.data(), end.ptr};
}

/// Prints the fewest digits that still round to the same value of the dtype.
std::string narrow_text(DType dtype, double value) {
  const bool is_whole = value == std::trunc(value) && std::abs(value) < 1e6;
  for (int precision = 1; precision < 9 && !is_whole; ++precision) {
    std::string text = general_text(value, precision);
    const double back[1] = {parse_real(text).value_or(0)};
    alignas(4) std::byte bits[4] = {};
    double rounded[1];
    store_reals(dtype, back, bits);
    load_reals(dtype, bits, rounded);
    if (rounded[0] == value) return text;
  }
  return general_text(static_cast<float>(value), 0);
}

}  // namespace

void load_reals(DType dtype, const std::byte* data, std::span<double> values) {
  if (dtype == DType::String) {
    const auto* texts = reinterpret_cast<const std::string*>(data);
    std::transform(texts, texts + values.size(), values.begin(), real_of);
    return;
  }
  with_reader(dtype, [&](auto sample, auto read) {
    const auto* stored = reinterpret_cast<const decltype(sample)*>(data);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(read(stored[i]));
    }
  });
}

void load_integers(DType dtype, const std::byte* data, std::span<std::int64_t> values) {
  if (dtype == DType::String) {
    const auto* texts = reinterpret_cast<const std::string*>(data);
    std::transform(texts, texts + values.size(), values.begin(), integer_of);
    return;
  }
  with_reader(dtype, [&](auto sample, auto read) {
    const auto* stored = reinterpret_cast<const decltype(sample)*>(data);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = read(stored[i]);
      if constexpr (std::is_integral_v<decltype(value)>) {
        values[i] = static_cast<std::int64_t>(value);
      } else {
        values[i] = truncated(static_cast<double>(value));
      }
    }
  });
}

void load_complex(DType dtype, const std::byte* data, std::span<std::complex<double>> values) {
  if (dtype == DType::C64) {
    const auto* stored = reinterpret_cast<const std::complex<float>*>(data);
    std::copy(stored, stored + values.size(), values.begin());
  } else if (dtype == DType::C128) {
    const auto* stored = reinterpret_cast<const std::complex<double>*>(data);
    std::copy(stored, stored + values.size(), values.begin());
  } else {
    const std::size_t step = info(dtype).storage_bytes;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double real[1];
      load_reals(dtype, data + i * step, real);
      values[i] = real[0];
    }
  }
}

void load_texts(DType dtype, const std::byte* data, std::span<std::string> values) {
  const std::size_t step = info(dtype).storage_bytes;
  for (std::size_t i = 0; i < values.size(); ++i, data += step) {
    if (dtype == DType::String) {
      values[i] = *reinterpret_cast<const std::string*>(data);
    } else if (is_complex(dtype)) {
      std::complex<double> value[1];
      load_complex(dtype, data, value);
      const std::string imaginary = general_text(value[0].imag(), 0);
      values[i] = general_text(value[0].real(), 0) + (imaginary.starts_with('-') ? "" : "+") +
                  imaginary + "j";
    } else if (is_float(dtype)) {
      double value[1];
      load_reals(dtype, data, value);
      values[i] = dtype == DType::F64   ? general_text(value[0], 0)
                  : dtype == DType::F32 ? general_text(static_cast<float>(value[0]), 0)
                                        : narrow_text(dtype, value[0]);
    } else {
      std::int64_t value[1];
      load_integers(dtype, data, value);
      values[i] = dtype == DType::U64 ? std::to_string(static_cast<std::uint64_t>(value[0]))
                                      : std::to_string(value[0]);
    }
  }
}

void store_reals(DType dtype, std::span<const double> values, std::byte* data) {
  const auto same = [](double value) { return value; };
  switch (info(dtype).arithmetic) {
    case Arithmetic::F64:
      return store_each<double>(values, data, same);
    case Arithmetic::F32:
      if (dtype == DType::F32) return store_each<float>(values, data, same);
      return store_narrow(dtype, values, data, to_odd_float);
    case Arithmetic::Signed:
      return store_wrapped(dtype, values, data, truncated);
    case Arithmetic::Unsigned:
      return store_wrapped(dtype, values, data, truncated_unsigned);
    case Arithmetic::Bool:
      return store_each<std::uint8_t>(values, data, [](double value) { return value != 0; });
    case Arithmetic::Complex:
      if (dtype == DType::C64) {
        return store_each<std::complex<float>>(
            values, data, [](double value) { return static_cast<float>(value); });
      }
      return store_each<std::complex<double>>(values, data, same);
    case Arithmetic::Text:
      break;
  }
  TENON_ASSERT(dtype != DType::String, "numbers are not stored among strings");
}

void store_integers(DType dtype, std::span<const std::int64_t> values, bool is_unsigned,
                    std::byte* data) {
  const auto same = [](std::int64_t value) { return value; };
  const auto real = [is_unsigned](std::int64_t value) {
    return is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(value))
                       : static_cast<double>(value);
  };
  const auto single = [is_unsigned](std::int64_t value) {
    return is_unsigned ? static_cast<float>(static_cast<std::uint64_t>(value))
                       : static_cast<float>(value);
  };
  switch (info(dtype).arithmetic) {
    case Arithmetic::F64:
      return store_each<double>(values, data, real);
    case Arithmetic::F32:
      if (dtype == DType::F32) return store_each<float>(values, data, single);
      return store_narrow(dtype, values, data, [is_unsigned](std::int64_t value) {
        return to_odd_float(to_sticky_double(value, is_unsigned));
      });
    case Arithmetic::Signed:
    case Arithmetic::Unsigned:
      return store_wrapped(dtype, values, data, same);
    case Arithmetic::Bool:
      return store_each<std::uint8_t>(values, data, [](std::int64_t value) { return value != 0; });
    case Arithmetic::Complex:
      if (dtype == DType::C64) return store_each<std::complex<float>>(values, data, single);
      return store_each<std::complex<double>>(values, data, real);
    case Arithmetic::Text:
      break;
  }
  TENON_ASSERT(dtype != DType::String, "numbers are not stored among strings");
}

void store_complex(DType dtype, std::span<const std::complex<double>> values, std::byte* data) {
  using Value = std::complex<double>;
  if (dtype == DType::C64) {
    return store_each<std::complex<float>>(values, data,
                                           [](Value value) { return std::complex<float>(value); });
  }
  if (dtype == DType::C128) {
    return store_each<Value>(values, data, [](Value value) { return value; });
  }
  if (dtype == DType::Bool) {
    return store_each<std::uint8_t>(values, data, [](Value value) { return value != 0.0; });
  }
  for (const Value& value : values) {
    const double real[1] = {value.real()};
    store_reals(dtype, real, data);
    data += info(dtype).storage_bytes;
  }
}

}  // namespace tenon::inline ir::elements
