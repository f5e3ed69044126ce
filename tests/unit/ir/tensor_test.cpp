#include "base/error.h"
#include "ir/constant.h"
#include "ir/float_formats.h"
#include "ir/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::tensor_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor reals(DType dtype, const std::vector<double>& values) {
  return Tensor::of(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(Tensor, StartsAsZeros) {
  for (const DTypeInfo& row : all_dtypes()) {
    const Tensor tensor(row.dtype, {2, 3});
    EXPECT_EQ(tensor.byte_size(), 6 * row.storage_bytes);
    EXPECT_EQ(to_string(tensor.type()), std::string(row.name) + "[2, 3]");
    if (row.dtype != DType::String && row.dtype != DType::F8E8M0) {
      EXPECT_EQ(tensor.real_at(5), 0);
    }
  }
  EXPECT_EQ(Tensor().size(), 0);
}

TEST(Tensor, RefusesImpossibleShapes) {
  EXPECT_THROW(Tensor(DType::F32, {-1}), Error);
  EXPECT_THROW(Tensor(DType::F32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  EXPECT_EQ(Tensor(DType::F32, {std::int64_t{1} << 60, std::int64_t{1} << 60, 0}).size(), 0);
  try {
    Tensor(DType::F64, {std::int64_t{1} << 53});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    EXPECT_NE(error.summary().find("f64[9007199254740992]"), std::string::npos);
  }
}

TEST(Tensor, CopiesOnWrite) {
  Tensor a = reals(DType::F32, {1, 2});
  const std::byte* data = a.bytes().data();
  a.set_real(0, 3);
  EXPECT_EQ(a.bytes().data(), data);
  Tensor b = a;
  EXPECT_EQ(b.bytes().data(), data);
  b.set_real(0, 4);
  EXPECT_NE(b.bytes().data(), data);
  EXPECT_EQ(a.real_at(0), 3);
  Tensor texts = Tensor::of_strings({2}, {"x", "y"});
  Tensor other = texts.reshaped({2, 1});
  other.mutable_strings()[0] = "z";
  EXPECT_EQ(texts.strings()[0], "x");
  EXPECT_FALSE(identical(texts, other));
}

TEST(Tensor, BorrowsBytes) {
  const auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const auto bytes = std::as_bytes(std::span(*owner));
  Tensor tensor = Tensor::borrow(DType::F32, {3}, owner, bytes);
  EXPECT_EQ(tensor.bytes().data(), bytes.data());
  tensor.set_real(1, 9);
  EXPECT_EQ((*owner)[1], 2);
  EXPECT_EQ(tensor.reals(), (std::vector<double>{1, 9, 3}));
  const Tensor unaligned = Tensor::borrow(DType::F32, {2}, owner, bytes.subspan(1, 8));
  EXPECT_NE(unaligned.bytes().data(), bytes.data() + 1);
  EXPECT_THROW(Tensor::borrow(DType::F32, {4}, owner, bytes), Error);
}

TEST(Tensor, ConvertsNumbers) {
  EXPECT_EQ(reals(DType::F32, {2.9, -2.9, 300, kNaN}).converted(DType::I8).integers(),
            (std::vector<std::int64_t>{2, -2, 44, 0}));
  EXPECT_EQ(reals(DType::F64, {kNaN, 0, -0.0, 0.5}).converted(DType::Bool).integers(),
            (std::vector<std::int64_t>{1, 0, 0, 1}));
  EXPECT_EQ(
      Tensor::of_integers(std::vector<std::int64_t>{200, -1, 9, 8}).converted(DType::I4).integers(),
      (std::vector<std::int64_t>{-8, -1, -7, -8}));
  EXPECT_EQ(Tensor::of_integers(std::vector<std::int64_t>{-1, 18}).converted(DType::U4).integers(),
            (std::vector<std::int64_t>{15, 2}));
  EXPECT_EQ(Tensor::of_integers(std::vector<std::int64_t>{-1})
                .converted(DType::U64)
                .converted(DType::F64)
                .real_at(0),
            0x1p64);
  EXPECT_EQ(reals(DType::F64, {0x1.8p63}).converted(DType::U64).integer_at(0),
            static_cast<std::int64_t>(0xc000000000000000u));
  EXPECT_EQ(reals(DType::F32, {1e9, -kInf, 0.3}).converted(DType::F8E4M3FN).reals(),
            (std::vector<double>{448, -448, 0.3125}));
  EXPECT_EQ(reals(DType::F32, {1e9}).converted(DType::F16).real_at(0), kInf);
  Tensor complex(DType::C64, {1});
  complex.set_complex(0, {0, 2});
  EXPECT_EQ(complex.converted(DType::C128).complex_at(0), std::complex<double>(0, 2));
  EXPECT_EQ(complex.converted(DType::Bool).integer_at(0), 1);
  EXPECT_EQ(complex.converted(DType::F32).real_at(0), 0);
  const Tensor large = Tensor(DType::I32, {2000}).converted(DType::F16);
  EXPECT_EQ(large.size(), 2000);
}

TEST(Tensor, RoundsOnlyOnce) {
  // Just above the midpoint of two f16 values: through f32 it would be a tie, and round down.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(Tensor::scalar(DType::F16, value).real_at(0), 1 + 0x1p-10);
  EXPECT_EQ(Tensor::scalar(DType::F16, -value).real_at(0), -1 - 0x1p-10);
  EXPECT_EQ(Tensor::scalar(DType::F16, 1 + 0x1p-11).real_at(0), 1);
  const std::int64_t wide = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  EXPECT_EQ(Tensor::of_integers({&wide, 1}).converted(DType::BF16).real_at(0), 0x1p62 + 0x1p55);
}

TEST(Tensor, ConvertsStrings) {
  const auto texts = [](const Tensor& tensor) {
    const Tensor converted = tensor.converted(DType::String);
    return std::vector<std::string>(converted.strings().begin(), converted.strings().end());
  };
  EXPECT_EQ(texts(reals(DType::F32, {1, 0.1, 314.15926, 1e-7, kNaN, kInf, -kInf})),
            (std::vector<std::string>{"1", "0.1", "314.15927", "1e-07", "NaN", "INF", "-INF"}));
  EXPECT_EQ(texts(reals(DType::F16, {0.1, 65504})), (std::vector<std::string>{"0.1", "65504"}));
  EXPECT_EQ(texts(reals(DType::I8, {-7})), std::vector<std::string>{"-7"});
  EXPECT_EQ(texts(reals(DType::U64, {0x1p63})), std::vector<std::string>{"9223372036854775808"});
  const Tensor numbers = Tensor::of_strings({6}, {"3.14", "1000", "1E8", "+INF", "-inf", " 1e-5 "});
  EXPECT_EQ(numbers.converted(DType::F64).reals(),
            (std::vector<double>{3.14, 1000, 1e8, kInf, -kInf, 1e-5}));
  EXPECT_TRUE(std::isnan(Tensor::of_strings({}, {"nAn"}).converted(DType::F32).real_at(0)));
  EXPECT_EQ(Tensor::of_strings({2}, {"100.5", "-8"}).converted(DType::I32).integers(),
            (std::vector<std::int64_t>{100, -8}));
  EXPECT_EQ(Tensor::of_strings({}, {"18446744073709551615"}).converted(DType::U64).integer_at(0),
            -1);
  for (const char* text : {"Hello", "", "1x", "infinity", "nan(1)", "--1"}) {
    EXPECT_THROW(Tensor::of_strings({}, {text}).converted(DType::F32), Error) << text;
  }
}

TEST(Tensor, ReshapesAndCompares) {
  const Tensor a = reals(DType::F32, {1, 2, 3, kNaN});
  EXPECT_TRUE(identical(a, reals(DType::F32, {1, 2, 3, kNaN})));
  EXPECT_FALSE(identical(reals(DType::F32, {0.0}), reals(DType::F32, {-0.0})));
  EXPECT_FALSE(identical(a, a.reshaped({2, 2})));
  EXPECT_THROW(a.reshaped({3}), Error);
  EXPECT_THROW(a.real_at(4), InternalError);
}

TEST(Constant, Splats) {
  const Constant constant = Constant::splat(Tensor::scalar(DType::F16, 1.5), {3, 5});
  EXPECT_EQ(constant.materialise().reals(), std::vector<double>(15, 1.5));
  EXPECT_EQ(constant.size(), 15);
  EXPECT_TRUE(identical(constant, Constant::splat(Tensor::scalar(DType::F16, 1.5), {3, 5})));
  EXPECT_FALSE(identical(constant, Constant(constant.materialise())));
}

TEST(Constant, FillsFromTheSeed) {
  const auto make = [](std::uint64_t seed, std::int64_t size) {
    return Constant::normal(DType::F32, {size}, seed, 1.0, 2.0).materialise();
  };
  const std::int64_t size = (1 << 20) + 3;  // enough for two threads
  const Tensor values = make(7, size);
  EXPECT_TRUE(identical(values, make(7, size)));
  EXPECT_FALSE(identical(values, make(8, size)));
  // An element does not depend on the number of elements.
  EXPECT_TRUE(std::ranges::equal(make(7, 1000).as<float>(), values.as<float>().first(1000)));
  double sum = 0, squares = 0;
  for (const float value : values.as<float>()) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double mean = sum / static_cast<double>(size);
  EXPECT_NEAR(mean, 1, 0.01);
  EXPECT_NEAR(squares / static_cast<double>(size) - mean * mean, 4, 0.03);
  EXPECT_FLOAT_EQ(values.as<float>()[0], make(7, 1).as<float>()[0]);
}

TEST(Constant, FillsUniformly) {
  std::vector<int> counts(5);
  for (const std::int64_t value :
       Constant::uniform(DType::I8, {10000}, 3, -2, 2).materialise().integers()) {
    ASSERT_TRUE(value >= -2 && value <= 2);
    ++counts[static_cast<std::size_t>(value + 2)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 200);
  for (const double value : Constant::uniform(DType::F16, {1000}, 3, -1, 1).materialise().reals()) {
    ASSERT_LE(std::abs(value), 1);
  }
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype == DType::String) continue;
    EXPECT_EQ(Constant::uniform(row.dtype, {9}, 1, 0, 1).materialise().size(), 9);
    EXPECT_EQ(Constant::normal(row.dtype, {9}, 1, 0, 1e30).materialise().size(), 9);
  }
  EXPECT_THROW(Constant::uniform(DType::F32, {1}, 0, 1, 0), Error);
  EXPECT_THROW(Constant::normal(DType::String, {1}, 0, 0, 1), Error);
}

}  // namespace
}  // namespace tenon::tensor_test
