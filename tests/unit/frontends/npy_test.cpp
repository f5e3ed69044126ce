#include "base/error.h"
#include "frontends/numpy/npy.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace tenon::frontends::numpy::npy_test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string file_of(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(dictionary.size() & 255);
  file += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) file.append(2, '\0');
  return file + dictionary + data;
}

std::string message_of(const std::string& file) {
  return error_summary([&] { read_npy(bytes_of(file)); });
}

TEST(Npy, TypesRoundTrip) {
  for (const DType dtype :
       {DType::F64, DType::F32, DType::F16, DType::I64, DType::I32, DType::I16, DType::I8,
        DType::U64, DType::U32, DType::U16, DType::U8, DType::Bool, DType::C64, DType::C128}) {
    Tensor tensor(dtype, {2, 3});
    for (std::int64_t k = 0; k < 6; ++k) {
      if (is_complex(dtype)) {
        tensor.set_complex(k, {double(k), -double(k)});
      } else {
        tensor.set_integer(k, dtype == DType::Bool ? k % 2 : k);
      }
    }
    EXPECT_TRUE(identical(read_npy(bytes_of(write_npy(tensor))), tensor)) << to_string(dtype);
  }
}

TEST(Npy, ScalarsAndEmptyArrays) {
  EXPECT_EQ(read_npy(bytes_of(write_npy(Tensor::scalar(DType::F32, 2.5)))).shape(), Shape{});
  EXPECT_EQ(read_npy(bytes_of(write_npy(Tensor(DType::I64, {0, 4})))).shape(), (Shape{0, 4}));
}

TEST(Npy, FilesAreByteIdentical) {
  const std::string path = ::testing::TempDir() + "npy_test.npy";
  for (const Tensor& tensor :
       {Tensor::of(DType::F32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6}),
        Tensor::of(DType::BF16, {3}, std::vector<double>{1, 2, 3}), Tensor(DType::I64, {0, 4}),
        Tensor::of_strings({2}, {"ab", "c"})}) {
    write_npy_file(tensor, path);
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_EQ(bytes, write_npy(tensor)) << to_string(tensor.dtype());
  }
  std::remove(path.c_str());
  EXPECT_EQ(error_summary([] { write_npy_file(Tensor(DType::F32, {1}), "/no such folder/x.npy"); }),
            "cannot write '/no such folder/x.npy'");
}

TEST(Npy, AlignsDataTo64) { EXPECT_EQ(write_npy(Tensor(DType::U8, {1, 2, 3})).size() % 64, 6u); }

TEST(Npy, WidensNarrowTypes) {
  const Tensor brain = Tensor::of(DType::BF16, {2}, std::vector<double>{1.5, -2});
  const Tensor read = read_npy(bytes_of(write_npy(brain)));
  EXPECT_EQ(read.dtype(), DType::F32);
  EXPECT_EQ(read.reals(), (std::vector<double>{1.5, -2}));
  const Tensor nibbles = Tensor::of(DType::I4, {2}, std::vector<int>{-8, 7});
  EXPECT_EQ(read_npy(bytes_of(write_npy(nibbles))).integers(), (std::vector<std::int64_t>{-8, 7}));
}

TEST(Npy, TransposesFortranOrder) {
  const std::string file =
      file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", {"\1\4\2\5\3\6", 6});
  EXPECT_EQ(read_npy(bytes_of(file)).integers(), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, SwapsBigEndian) {
  const std::string file =
      file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", {"\1\2\xff\xff", 4});
  EXPECT_EQ(read_npy(bytes_of(file)).integers(), (std::vector<std::int64_t>{258, -1}));
  const std::string complex = file_of("{'descr': '>c8', 'fortran_order': False, 'shape': (), }",
                                      {"\x3f\x80\x00\x00\x40\x00\x00\x00", 8});
  EXPECT_EQ(read_npy(bytes_of(complex)).complex_at(0), (std::complex<double>{1, 2}));
}

TEST(Npy, LengthsOfLaterVersions) {
  for (const char version : {'\2', '\3'}) {
    const std::string file =
        file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\1", version);
    EXPECT_EQ(read_npy(bytes_of(file)).dtype(), DType::Bool);
  }
}

TEST(Npy, StringsRoundTrip) {
  const Tensor texts = Tensor::of_strings({3}, {"a", "größer", ""});
  EXPECT_TRUE(identical(read_npy(bytes_of(write_npy(texts))), texts));
  const Tensor odd = Tensor::of_strings({2}, {"\xff\xfe", "plain"});  // not UTF-8
  EXPECT_TRUE(identical(read_npy(bytes_of(write_npy(odd))), odd));
}

TEST(Npy, OpaqueBytesRequireAType) {
  const std::string file =
      file_of("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", {"\x80\x3f", 2});
  EXPECT_EQ(read_npy(bytes_of(file), DType::BF16).real_at(0), 1.0);
  EXPECT_EQ(message_of(file), "npy: no element type of Tenon's fits");
}

TEST(Npy, RefusesBrokenFiles) {
  EXPECT_EQ(message_of(""), "npy: not a NumPy array");
  EXPECT_EQ(message_of("PK\3\4 something else"), "npy: not a NumPy array");
  EXPECT_EQ(
      message_of(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234567")),
      "npy: the file ends before its array does");
  EXPECT_EQ(
      message_of(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (268435456,)}", "x")),
      "npy: the file ends before its array does");
  EXPECT_EQ(message_of(file_of("{'descr': '<f4', 'shape': (2,)}", "")),
            "npy: the header is incomplete");
  EXPECT_EQ(message_of(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "")),
            "npy: an extent is not a number");
  EXPECT_EQ(message_of(file_of("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "")),
            "npy: the array holds Python objects");
  EXPECT_EQ(
      message_of(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")),
      "npy: the array holds records of several fields");
  EXPECT_EQ(message_of(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2")),
            "npy: a byte is no bool");
  EXPECT_EQ(
      message_of(file_of("{'descr': '|S0', 'fortran_order': False, 'shape': (99999999,)}", "")),
      "npy: too many texts of no width");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\1\0\xff\xff{", 11)),
            "npy: the file ends inside its header");
}

TEST(Npy, RefusesHugeShapes) {
  const std::string four = "4611686018427387904";
  EXPECT_NE(
      message_of(file_of(
          "{'descr': '<f8', 'fortran_order': True, 'shape': (" + four + ", " + four + ")}", "")),
      "no error");
  EXPECT_EQ(
      message_of(file_of(
          "{'descr': '<U9', 'fortran_order': True, 'shape': (0, " + four + ", " + four + ")}", "")),
      "no error");
  EXPECT_NE(message_of(file_of("{'descr': '|S99999999999999999', 'fortran_order': False, 'shape': "
                               "(72057594037927936,)}",
                               "")),
            "no error");
}

}  // namespace
}  // namespace tenon::frontends::numpy::npy_test
