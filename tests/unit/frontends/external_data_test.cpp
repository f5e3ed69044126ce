#include "base/error.h"
#include "frontends/onnx/external_data.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/sha1.h"
#include "frontends/onnx/tensor_proto.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::frontends::onnx::external_data_test {
namespace {

namespace fs = std::filesystem;
using onnx_schema::TensorProto;

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    top_ = fs::path(::testing::TempDir()) / "tenon_external_data";
    fs::remove_all(top_);
    fs::create_directories(top_ / "model/weights");
    write("secret", std::string(64, 's'));
    write("model/weights/w.bin", std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  }
  void TearDown() override { fs::remove_all(top_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(top_ / name, std::ios::binary) << content;
  }

  static TensorProto tensor(const std::vector<std::pair<std::string, std::string>>& entries,
                            std::int64_t size = 2) {
    TensorProto proto;
    proto.set_data_type(TensorProto::FLOAT);
    proto.add_dims(size);
    proto.set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *proto.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    return proto;
  }

  Tensor read(const TensorProto& proto) {
    ExternalFiles files(top_ / "model");
    return read_tensor(proto, nullptr, files);
  }

  std::string message_of(const TensorProto& proto) {
    return error_summary([&] { read(proto); });
  }

  fs::path top_;
};

TEST_F(ExternalData, ReadsBelowTheModelsFolder) {
  EXPECT_EQ(read(tensor({{"location", "weights/w.bin"}})).reals(), (std::vector<double>{1, 2}));
  EXPECT_EQ(
      read(tensor({{"location", "./weights//w.bin"}, {"offset", "4"}, {"length", "4"}}, 1)).reals(),
      std::vector<double>{2});
  fs::create_symlink("w.bin", top_ / "model/weights/link.bin");
  EXPECT_EQ(message_of(tensor({{"location", "weights/link.bin"}})), "no error");
}

TEST_F(ExternalData, RefusesPathsOutsideTheFolder) {
  EXPECT_EQ(message_of(tensor({{"location", (top_ / "secret").string()}})),
            "refused to open '" + (top_ / "secret").string() + "': the path is absolute");
  EXPECT_EQ(message_of(tensor({{"location", "../secret"}})),
            "refused to open '../secret': the path has '..' in it");
  EXPECT_EQ(message_of(tensor({{"location", "weights/../../secret"}})),
            "refused to open 'weights/../../secret': the path has '..' in it");
  fs::create_symlink(top_ / "secret", top_ / "model/absolute");
  fs::create_symlink("../secret", top_ / "model/relative");
  fs::create_directory_symlink("..", top_ / "model/up");
  for (const std::string name : {"absolute", "relative", "up/secret"}) {
    EXPECT_EQ(message_of(tensor({{"location", name}})),
              "refused to open '" + name + "': a symbolic link leads out of the model's folder");
  }
  const std::string null_inside("weights/w.bin\0x", 15);
  EXPECT_EQ(message_of(tensor({{"location", null_inside}})),
            "refused to open '" + null_inside + "': the path holds a null character");
}

TEST_F(ExternalData, RefusesRangesOutsideTheFile) {
  const std::string outside = "external data: the tensor lies outside the file";
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}, {"offset", "9"}})), outside);
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}, {"length", "9"}})), outside);
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"},
                               {"offset", "9223372036854775807"},
                               {"length", "9223372036854775807"}})),
            outside);
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}}, 268435456)),
            "tensor: its data does not fill its shape");
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}, {"offset", "-4"}})),
            "external data: the offset is not a number of bytes");
}

TEST_F(ExternalData, OpensOnlyRegularFiles) {
  EXPECT_EQ(message_of(tensor({{"location", "weights"}})), "'weights' is a folder, not a file");
  EXPECT_NE(message_of(tensor({{"location", "missing"}})).find("No such file"), std::string::npos);
}

TEST_F(ExternalData, VerifiesChecksums) {
  const std::string right = sha1_hex(std::as_bytes(std::span("\0\0\x80\x3f\0\0\0\x40", 8)));
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}, {"checksum", right}})), "no error");
  EXPECT_EQ(message_of(tensor({{"location", "weights/w.bin"}, {"checksum", std::string(40, '0')}})),
            "external data: 'weights/w.bin' is not the file the model means");
}

TEST(Sha1, KnownDigests) {
  const auto hex = [](const std::string& text) { return sha1_hex(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

}  // namespace
}  // namespace tenon::frontends::onnx::external_data_test
