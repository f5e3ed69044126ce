#include "ir/constant.h"
#include "ir/text.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::scaled_constant_test {
namespace {

Tensor counted(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  for (std::int64_t k = 0; k < tensor.size(); ++k) tensor.set_real(k, static_cast<double>(k + 1));
  return tensor;
}

// Element-wise products with the broadcast factors.
std::vector<double> expected(const Tensor& base, const Tensor& factors) {
  std::vector<double> products;
  const std::size_t missing = base.rank() - factors.rank();
  for (std::int64_t k = 0; k < base.size(); ++k) {
    std::int64_t rest = k, place = 0, step = 1;
    for (std::size_t axis = base.rank(); axis-- > 0;) {
      const std::int64_t index = rest % base.shape()[axis];
      rest /= base.shape()[axis];
      if (axis < missing) continue;
      const std::int64_t extent = factors.shape()[axis - missing];
      if (extent != 1) place += index * step;
      step *= extent;
    }
    Tensor rounded(base.dtype(), {});
    rounded.set_real(0, base.real_at(k) * factors.real_at(place));
    products.push_back(rounded.real_at(0));
  }
  return products;
}

TEST(ScaledConstant, BroadcastsFactors) {
  const std::vector<Shape> shapes = {
      {},        {1},          {5},          {4, 1},       {4, 5},       {3, 1, 1},   {3, 1, 5},
      {3, 4, 1}, {2, 1, 1, 1}, {1, 3, 1, 1}, {1, 3, 1, 5}, {2, 3, 4, 5}, {2, 1, 4, 1}};
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Tensor base = counted(dtype, {2, 3, 4, 5});
    for (const Shape& shape : shapes) {
      Tensor factors = counted(DType::F64, shape);
      factors.set_real(0, 1.0 / 3);
      const Constant constant = Constant::scaled(base, factors);
      EXPECT_EQ(constant.type(), base.type());
      EXPECT_EQ(constant.materialise().reals(), expected(base, factors)) << print(constant);
      EXPECT_TRUE(identical(constant.base(), Constant(base)));
    }
  }
}

TEST(ScaledConstant, SeededAndSplatBases) {
  const Tensor factors = Tensor::of(DType::F64, {3, 1}, std::vector<double>{2, 0.5, -1});
  const Constant seeded = Constant::normal(DType::F32, {3, 700}, 7, 0, 1);
  EXPECT_EQ(Constant::scaled(seeded, factors).materialise().reals(),
            expected(seeded.materialise(), factors));
  const Constant splat = Constant::splat(Tensor::scalar(DType::F32, 3), {3, 2});
  EXPECT_EQ(Constant::scaled(splat, factors).materialise().reals(),
            (std::vector<double>{6, 6, 1.5, 1.5, -3, -3}));
}

// Infinity times a factor that underflowed to zero would be NaN.
TEST(ScaledConstant, ProductsAreZeroOnlyForZeroFactors) {
  const std::pair<DType, double> rows[] = {{DType::F16, 0x1p-24},
                                           {DType::BF16, 0x1p-133},
                                           {DType::F32, 0x1p-149},
                                           {DType::F64, 0x1p-1074}};
  for (const auto& [dtype, least] : rows) {
    const Tensor base = Tensor::of(dtype, {4}, std::vector<double>{least, -least, 0, least});
    const Tensor factors = Tensor::of(DType::F64, {4}, std::vector<double>{0.5, 0.25, 2, 0});
    EXPECT_EQ(Constant::scaled(base, factors).materialise().reals(),
              (std::vector<double>{least, -least, 0, 0}))
        << to_string(dtype);
  }
}

TEST(ScaledConstant, Empty) {
  const Constant none = Constant::normal(DType::F32, {std::int64_t{1} << 60, 0}, 1, 0, 1);
  EXPECT_EQ(Constant::scaled(none, Tensor(DType::F64, {0})).materialise().size(), 0);
  EXPECT_EQ(Constant::scaled(none, Tensor(DType::F64, {1})).materialise().size(), 0);
}

TEST(ScaledConstant, ComparesSeedsAndFactors) {
  const Tensor twos = Tensor::of(DType::F64, {2, 1}, std::vector<double>{2, 2});
  const Constant a = Constant::scaled(counted(DType::F32, {2, 2}), twos);
  EXPECT_TRUE(identical(a, Constant::scaled(counted(DType::F32, {2, 2}), twos)));
  EXPECT_FALSE(identical(a, Constant::scaled(counted(DType::F32, {2, 2}), twos.reshaped({1, 2}))));
  EXPECT_FALSE(identical(a, Constant::scaled(Tensor(DType::F32, {2, 2}), twos)));
  EXPECT_FALSE(identical(a, Constant(counted(DType::F32, {2, 2}))));
}

TEST(ScaledConstant, TextRoundTrip) {
  const char* texts[] = {
      "f32[2, 2] [1, 2, 3, 4] * f64[2, 1] [0.5, 1e-300]",
      "f16[1000, 1000] normal(seed = 7, mean = 0.0, deviation = 1.0) * f64[] 0.1",
      "f64[4, 2] uniform(seed = 7, low = 0.0, high = 1.0) * f64[2] [1, nan]",
      "bf16[2, 2] splat 3 * f64[2] [1, inf]",
  };
  for (const char* text : texts) {
    const Constant constant = parse_constant(text);
    EXPECT_EQ(constant.kind(), Constant::Kind::Scaled);
    EXPECT_EQ(print(constant), text);
  }
  const Constant large = Constant::scaled(Constant::normal(DType::F32, {100, 2}, 1, 0, 1),
                                          counted(DType::F64, {100, 1}));
  EXPECT_TRUE(identical(parse_constant(print(large)), large));
}

TEST(ScaledConstant, RefusesInvalidFactors) {
  const auto message = [](const char* text) { return error_text([&] { parse_constant(text); }); };
  EXPECT_EQ(message("i32[2] [1, 2] * f64[2] [1, 2]"),
            "a constant of this type cannot be scaled\n"
            "  at        constant, line 1, column 1\n"
            "  expected  f16, bf16, f32 or f64\n"
            "  got       i32");
  EXPECT_EQ(message("f32[2] [1, 2] * f64[3] [1, 2, 3]"),
            "the factors of a constant do not fit its type\n"
            "  at        constant, line 1, column 1\n"
            "  expected  f64 of a shape that broadcasts to that of f32[2]\n"
            "  got       f64[3]");
  EXPECT_EQ(message("f32[2] [1, 2] * f32[2] [1, 2]"),
            "the factors of a constant do not fit its type\n"
            "  at        constant, line 1, column 1\n"
            "  expected  f64 of a shape that broadcasts to that of f32[2]\n"
            "  got       f32[2]");
  EXPECT_EQ(message("f32[2] [1, 2] * f64[2] splat 3"),
            "factors are written out\n"
            "  at        constant, line 1, column 24\n"
            "  expected  […] or base64 \"…\"");
  EXPECT_EQ(message("f32[2] [1, 2] * f64[2] [1, 2] * f64[2] [1, 2]"),
            "expected nothing after the constant\n"
            "  at        constant, line 1, column 31\n"
            "  got       \"*\"");
}

}  // namespace
}  // namespace tenon::scaled_constant_test
