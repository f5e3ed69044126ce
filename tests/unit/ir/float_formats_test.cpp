#include "ir/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

namespace tenon::float_formats_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const std::vector<DType> kNarrow = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2,
                                    DType::F8E5M2FNUZ, DType::F4E2M1};

unsigned code_count(DType dtype) { return dtype == DType::F4E2M1 ? 16 : 256; }

/// Finite magnitudes by value, each with its code.
std::map<double, unsigned> magnitudes(unsigned count,
                                      const std::function<float(unsigned)>& decode) {
  std::map<double, unsigned> values;
  for (unsigned code = 0; code < count; ++code) {
    const float value = decode(code);
    if (std::isfinite(value) && !std::signbit(value)) values.emplace(value, code);
  }
  return values;
}

/// Rounds to nearest by search, ties to the even code, saturating at the greatest magnitude.
unsigned nearest_code(const std::map<double, unsigned>& values, double value) {
  const auto above = values.lower_bound(value);
  if (above == values.begin() || above->first == value) return above->second;
  const auto below = std::prev(above);
  const double down = value - below->first, up = above->first - value;
  if (down != up) return down < up ? below->second : above->second;
  return below->second % 2 == 0 ? below->second : above->second;
}

/// Every midpoint of two neighbours, its own neighbours, and random values.
std::vector<float> probes(const std::map<double, unsigned>& values) {
  std::vector<float> result;
  for (auto it = values.begin(); std::next(it) != values.end(); ++it) {
    const auto middle = static_cast<float>((it->first + std::next(it)->first) / 2);
    result.insert(result.end(),
                  {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)});
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 5000; ++i) {
    result.push_back(static_cast<float>(values.rbegin()->first * unit(random)));
    result.push_back(
        static_cast<float>(std::pow(values.rbegin()->first, unit(random)) * unit(random)));
  }
  return result;
}

TEST(FloatFormats, NarrowCodesRoundTrip) {
  for (const DType dtype : kNarrow) {
    for (unsigned code = 0; code < code_count(dtype); ++code) {
      const float value = narrow_float_to_f32(dtype, static_cast<std::uint8_t>(code));
      for (const Overflow overflow : {Overflow::Saturate, Overflow::Special}) {
        const std::uint8_t back = f32_to_narrow_float(dtype, value, overflow);
        if (std::isnan(value)) {
          EXPECT_TRUE(std::isnan(narrow_float_to_f32(dtype, back))) << to_string(dtype) << code;
        } else if (std::isinf(value) && overflow == Overflow::Saturate) {
          EXPECT_EQ(std::abs(narrow_float_to_f32(dtype, back)), highest_finite(dtype));
        } else {
          EXPECT_EQ(back, code) << to_string(dtype);
        }
      }
    }
  }
}

TEST(FloatFormats, NarrowRoundsToNearestEven) {
  for (const DType dtype : kNarrow) {
    const auto values = magnitudes(code_count(dtype), [&](unsigned code) {
      return narrow_float_to_f32(dtype, static_cast<std::uint8_t>(code));
    });
    EXPECT_EQ(values.rbegin()->first, highest_finite(dtype)) << to_string(dtype);
    for (const float probe : probes(values)) {
      const unsigned expected = nearest_code(values, probe);
      EXPECT_EQ(f32_to_narrow_float(dtype, probe), expected) << to_string(dtype) << " " << probe;
      const float negative = narrow_float_to_f32(dtype, f32_to_narrow_float(dtype, -probe));
      EXPECT_EQ(negative, -narrow_float_to_f32(dtype, static_cast<std::uint8_t>(expected)));
    }
  }
}

TEST(FloatFormats, SpecialValues) {
  const auto code = [](DType dtype, float value, Overflow overflow) {
    return static_cast<int>(f32_to_narrow_float(dtype, value, overflow));
  };
  struct Row {
    DType dtype;
    int nan, negative_zero, highest, special, negative_special;
  };
  for (const Row& row : {Row{DType::F8E4M3FN, 0x7f, 0x80, 0x7e, 0x7f, 0xff},
                         Row{DType::F8E4M3FNUZ, 0x80, 0x00, 0x7f, 0x80, 0x80},
                         Row{DType::F8E5M2, 0x7f, 0x80, 0x7b, 0x7c, 0xfc},
                         Row{DType::F8E5M2FNUZ, 0x80, 0x00, 0x7f, 0x80, 0x80},
                         Row{DType::F4E2M1, 0x08, 0x08, 0x07, 0x07, 0x0f}}) {
    const int sign = row.dtype == DType::F4E2M1 ? 0x08 : 0x80;
    EXPECT_EQ(code(row.dtype, kNaN, Overflow::Saturate), row.nan) << to_string(row.dtype);
    EXPECT_EQ(code(row.dtype, -0.0f, Overflow::Saturate), row.negative_zero);
    for (const float huge : {kInf, 1e30f, 1e6f}) {
      EXPECT_EQ(code(row.dtype, huge, Overflow::Saturate), row.highest);
      EXPECT_EQ(code(row.dtype, -huge, Overflow::Saturate), row.highest | sign);
      EXPECT_EQ(code(row.dtype, huge, Overflow::Special), row.special);
      EXPECT_EQ(code(row.dtype, -huge, Overflow::Special), row.negative_special);
    }
  }
  // Values up to half a step past the greatest round to it.
  EXPECT_EQ(code(DType::F8E4M3FN, 464.0f, Overflow::Special), 0x7e);
  EXPECT_EQ(code(DType::F8E4M3FN, 464.1f, Overflow::Special), 0x7f);
}

TEST(FloatFormats, Scales) {
  const auto code = [](float value, ScaleRounding rounding,
                       Overflow overflow = Overflow::Saturate) {
    return static_cast<int>(f32_to_narrow_float(DType::F8E8M0, value, overflow, rounding));
  };
  for (const auto rounding : {ScaleRounding::Up, ScaleRounding::Down, ScaleRounding::Nearest}) {
    for (int bits = 0; bits < 255; ++bits) {
      EXPECT_EQ(code(narrow_float_to_f32(DType::F8E8M0, static_cast<std::uint8_t>(bits)), rounding),
                bits);
    }
    EXPECT_EQ(code(0.0f, rounding), 0);
    EXPECT_EQ(code(kNaN, rounding), 0xff);
    EXPECT_EQ(code(kInf, rounding), 0xfe);
    EXPECT_EQ(code(kInf, rounding, Overflow::Special), 0xff);
  }
  EXPECT_EQ(code(2.1f, ScaleRounding::Up), 129);
  EXPECT_EQ(code(3.9f, ScaleRounding::Down), 128);
  EXPECT_EQ(code(2.9f, ScaleRounding::Nearest), 128);
  EXPECT_EQ(code(3.0f, ScaleRounding::Nearest), 129);
  EXPECT_EQ(code(3e38f, ScaleRounding::Up), 0xfe);
  EXPECT_EQ(code(3e38f, ScaleRounding::Up, Overflow::Special), 0xff);
}

TEST(FloatFormats, HalvesRoundTripAndRound) {
  const std::vector<std::pair<float (*)(std::uint16_t), std::uint16_t (*)(float)>> formats = {
      {f16_to_f32, f32_to_f16}, {bf16_to_f32, f32_to_bf16}};
  for (const auto& [decode, encode] : formats) {
    for (unsigned code = 0; code < 65536; ++code) {
      ASSERT_EQ(encode(decode(static_cast<std::uint16_t>(code))), code);
    }
    const auto values = magnitudes(
        65536, [&, d = decode](unsigned code) { return d(static_cast<std::uint16_t>(code)); });
    for (const float probe : probes(values)) {
      const unsigned expected = nearest_code(values, probe);
      ASSERT_EQ(encode(probe), expected) << probe;
      ASSERT_EQ(encode(-probe), expected | 0x8000u) << probe;
    }
    EXPECT_TRUE(std::isnan(decode(encode(std::nanf("1")))));
  }
  EXPECT_EQ(f32_to_f16(65519.9f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_bf16(3.4e38f), 0x7f80);
}

}  // namespace
}  // namespace tenon::float_formats_test
