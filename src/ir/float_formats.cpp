#include "ir/float_formats.h"

#include "base/error.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon::inline ir {

namespace {

/// A float of 8 or fewer bits: sign, exponent, mantissa. Codes exclude the sign bit.
struct NarrowFormat {
  int mantissa_bits;
  /// Lowest exponent of normal numbers; denormals share it.
  int lowest_exponent;
  std::uint8_t sign_bit;
  /// Code of the greatest finite value.
  std::uint8_t highest;
  /// Code that overflow produces: infinity, NaN, or `highest`.
  std::uint8_t overflow;
  /// Code of NaN; -0 for f4e2m1, which has no NaN, as in the expected results of ONNX's tests.
  std::uint8_t nan;
  /// "fnuz" format: the code of -0 is the NaN, and overflow has no sign.
  bool is_unsigned_zero;
};

constexpr NarrowFormat kE4M3Fn = {3, -6, 0x80, 0x7e, 0x7f, 0x7f, false};
constexpr NarrowFormat kE4M3FnUz = {3, -7, 0x80, 0x7f, 0x80, 0x80, true};
constexpr NarrowFormat kE5M2 = {2, -14, 0x80, 0x7b, 0x7c, 0x7f, false};
constexpr NarrowFormat kE5M2FnUz = {2, -15, 0x80, 0x7f, 0x80, 0x80, true};
constexpr NarrowFormat kE2M1 = {1, 0, 0x08, 0x07, 0x07, 0x08, false};

const NarrowFormat& format_of(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN:
      return kE4M3Fn;
    case DType::F8E4M3FNUZ:
      return kE4M3FnUz;
    case DType::F8E5M2:
      return kE5M2;
    case DType::F8E5M2FNUZ:
      return kE5M2FnUz;
    case DType::F4E2M1:
      return kE2M1;
    default:
      break;
  }
  throw InternalError("format_of(dtype)", "the dtype is a narrow float", __FILE__, __LINE__);
}

float decode(const NarrowFormat& format, std::uint8_t bits) {
  const float sign = bits & format.sign_bit ? -1.0f : 1.0f;
  const int code = bits & (format.sign_bit - 1);
  if (format.is_unsigned_zero && bits == format.nan) return std::numeric_limits<float>::quiet_NaN();
  if (code > format.highest) {
    const bool is_infinite = code == format.overflow && format.overflow != format.nan;
    return sign * (is_infinite ? std::numeric_limits<float>::infinity()
                               : std::numeric_limits<float>::quiet_NaN());
  }
  const int one = 1 << format.mantissa_bits;
  const int exponent = code >> format.mantissa_bits;
  const int mantissa = code & (one - 1);
  const int scale = format.lowest_exponent - format.mantissa_bits;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), scale);
  return sign * std::ldexp(static_cast<float>(mantissa + one), scale + exponent - 1);
}

std::uint8_t encode(const NarrowFormat& format, float value, Overflow overflow) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint8_t sign = bits >> 31 ? format.sign_bit : std::uint8_t{0};
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127;
  const std::uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  const auto special = [&](std::uint8_t code) -> std::uint8_t {
    return format.is_unsigned_zero ? code : static_cast<std::uint8_t>(code | sign);
  };
  if (std::isnan(value)) return format.nan == format.sign_bit ? format.nan : special(format.nan);
  std::uint32_t code = format.highest + 1u;
  if (!std::isinf(value)) {
    // Denormals of f32 and values with a shift over 25 are below half of every format's least
    // value.
    const int steps = exponent < format.lowest_exponent ? format.lowest_exponent - exponent : 0;
    const int shift = 23 - format.mantissa_bits + steps;
    code = 0;
    if (exponent > -127 && shift <= 25) {
      const std::uint32_t half = 1u << (shift - 1), kept = mantissa >> shift;
      const std::uint32_t dropped = mantissa & (2 * half - 1);
      code = kept + (dropped > half || (dropped == half && (kept & 1)) ? 1 : 0);
      // A carry out of the mantissa increments the exponent.
      code += static_cast<std::uint32_t>(exponent + steps - format.lowest_exponent)
              << format.mantissa_bits;
    }
  }
  if (code > format.highest) {
    if (overflow == Overflow::Special && format.overflow != format.highest) {
      return special(format.overflow);
    }
    code = format.highest;
  }
  if (code == 0 && format.is_unsigned_zero) return 0;
  return static_cast<std::uint8_t>(code | sign);
}

// E8M0: code b is 2^(b-127). The sign is dropped, as ONNX does, and zero becomes the least value.
std::uint8_t encode_scale(float value, Overflow overflow, ScaleRounding rounding) {
  constexpr std::uint8_t kNaN = 0xff, kHighest = 0xfe;
  if (std::isnan(value)) return kNaN;
  const std::uint8_t too_large = overflow == Overflow::Saturate ? kHighest : kNaN;
  if (std::isinf(value)) return too_large;
  if (std::abs(value) <= 0x1p-127f) return 0;
  int exponent = 0;
  const float fraction = 2 * std::frexp(std::abs(value), &exponent);  // in [1, 2)
  int code = exponent - 1 + 127;
  const bool is_up = rounding == ScaleRounding::Up
                         ? fraction > 1.0f
                         : rounding == ScaleRounding::Nearest && fraction >= 1.5f;
  if (is_up) ++code;
  return code > kHighest ? too_large : static_cast<std::uint8_t>(code);
}

using DecodedCodes = std::array<float, 256>;

DecodedCodes decode_all(DType dtype) {
  DecodedCodes values{};
  for (unsigned code = 0; code < 256; ++code) {
    if (dtype == DType::F8E8M0) {
      values[code] = code == 0xff ? std::numeric_limits<float>::quiet_NaN()
                                  : std::ldexp(1.0f, static_cast<int>(code) - 127);
    } else {
      const std::uint8_t mask = dtype == DType::F4E2M1 ? 0x0f : 0xff;
      values[code] = decode(format_of(dtype), static_cast<std::uint8_t>(code & mask));
    }
  }
  return values;
}

}  // namespace

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  const std::uint32_t widened = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN keeps the payload bits that fit
    const std::uint32_t payload = (magnitude >> 13) & 0x3ff;
    return static_cast<std::uint16_t>(sign | 0x7c00 | (payload ? payload : 0x200));
  }
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // from 65520 on
  if (magnitude < 0x38800000) {
    // Below 2^-14 the result counts units of 2^-24, the last place of 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1) - (std::uint32_t{127 - 15} << 23);
  return static_cast<std::uint16_t>(sign | (magnitude >> 13));
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    const std::uint32_t kept = bits >> 16;
    // a NaN must not become infinity
    return static_cast<std::uint16_t>(kept & 0x7f ? kept : kept | 0x40);
  }
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float narrow_float_to_f32(DType dtype, std::uint8_t bits) {
  static const std::array<DecodedCodes, 6> tables = {
      decode_all(DType::F8E4M3FN),   decode_all(DType::F8E4M3FNUZ), decode_all(DType::F8E5M2),
      decode_all(DType::F8E5M2FNUZ), decode_all(DType::F8E8M0),     decode_all(DType::F4E2M1)};
  TENON_ASSERT(dtype >= DType::F8E4M3FN && dtype <= DType::F4E2M1, "the dtype is a narrow float");
  return tables[static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::F8E4M3FN)][bits];
}

std::uint8_t f32_to_narrow_float(DType dtype, float value, Overflow overflow,
                                 ScaleRounding rounding) {
  if (dtype == DType::F8E8M0) return encode_scale(value, overflow, rounding);
  return encode(format_of(dtype), value, overflow);
}

}  // namespace tenon::inline ir
