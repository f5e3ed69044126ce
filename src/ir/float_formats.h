#pragma once

#include "ir/dtype.h"

#include <cstdint>

namespace tenon::inline ir {

/// Conversion of values too large for the target: greatest finite value, or infinity/NaN.
enum class Overflow { Saturate, Special };
/// Tie rounding to F8E8M0, which has no mantissa for round-to-even.
enum class ScaleRounding { Up, Down, Nearest };

float f16_to_f32(std::uint16_t bits);
/// Rounds to nearest even.
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
/// Rounds to nearest even.
std::uint16_t f32_to_bf16(float value);

/// Conversions of the 8-bit and narrower floats: F8*, F8E8M0, F4E2M1.
float narrow_float_to_f32(DType dtype, std::uint8_t bits);
std::uint8_t f32_to_narrow_float(DType dtype, float value, Overflow overflow = Overflow::Saturate,
                                 ScaleRounding rounding = ScaleRounding::Up);

}  // namespace tenon::inline ir
