#include "frontends/safetensors/safetensors.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace tenon::safetensors_test {
namespace {

std::string file_of(std::string header, const std::string& data) {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string message_of(const std::string& bytes) {
  return error_summary([&] { frontends::read_safetensors(std::as_bytes(std::span(bytes))); });
}

TEST(SafeTensors, RoundTripsTensorsAndTexts) {
  frontends::SafeTensors content;
  content.metadata = {{"step", "12"}, {"text", "a \"quoted\"\nline\\"}};
  content.tensors.emplace_back("w",
                               Tensor::of(DType::F32, {2, 2}, std::vector<double>{1, -2, 0.5, 3}));
  content.tensors.emplace_back("step", Tensor::of_integers(std::vector<std::int64_t>{7}));
  content.tensors.emplace_back("empty", Tensor(DType::BF16, {0, 3}));
  content.tensors.emplace_back("flag", Tensor(DType::Bool, {}));
  const std::string path = ::testing::TempDir() + "round_trip.safetensors";
  frontends::write_safetensors_file(content, path);
  const frontends::SafeTensors read = frontends::read_safetensors_file(path);
  EXPECT_EQ(read.metadata, content.metadata);
  ASSERT_EQ(read.tensors.size(), content.tensors.size());
  for (std::size_t k = 0; k < read.tensors.size(); ++k) {
    EXPECT_EQ(read.tensors[k].first, content.tensors[k].first);
    EXPECT_TRUE(identical(read.tensors[k].second, content.tensors[k].second));
  }
  std::filesystem::remove(path);
}

TEST(SafeTensors, RefusesOtherFiles) {
  EXPECT_EQ(message_of("short"), "safetensors: the file is too short");
  EXPECT_EQ(message_of(std::string(8, '\xff')), "safetensors: the header is longer than the file");
  EXPECT_EQ(
      message_of(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")),
      "the elements do not fit the shape");
  EXPECT_EQ(
      message_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "12345678")),
      "safetensors: the file is longer or shorter than its tensors");
  EXPECT_EQ(
      message_of(file_of(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          "1234")),
      "safetensors: elements overlap or leave a gap");
  EXPECT_EQ(
      message_of(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234")),
      "the file ends before the tensor does: it was cut off or is damaged");
  EXPECT_EQ(
      message_of(file_of(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "1234")),
      "there is no element type 'F31'");
  EXPECT_NE(message_of(file_of(R"({"a":)", "")), "no error");
  EXPECT_NE(
      message_of(file_of(
          R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})",
          "")),
      "no error");
}

TEST(SafeTensors, KeepsTheOldFileOnAFullDisk) {
  frontends::SafeTensors content;
  content.tensors.emplace_back("w", Tensor(DType::F32, {1024}));
  EXPECT_NE(error_summary([&] { frontends::write_safetensors_file(content, "/dev/full"); }),
            "no error");
}

}  // namespace
}  // namespace tenon::safetensors_test
