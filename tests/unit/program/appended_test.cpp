#include "base/error.h"
#include "driver/compile.h"
#include "models/model_source.h"
#include "models/shared_object.h"
#include "program/appended.h"
#include "program/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::appended_test {
namespace {

namespace fs = std::filesystem;

class Appended : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string bytes(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
  }
  const Program& program() const {
    static const Program made = driver::compile_graph(models::ModelSource("zoo:mlp").graph());
    return made;
  }
  const std::vector<std::byte> carrier_ = std::vector<std::byte>(5000, std::byte{7});

 private:
  fs::path folder_ = fs::temp_directory_path() / ("tenon_appended_" + std::to_string(getpid()));
};

TEST_F(Appended, ReadsFromTheEndOfACarrier) {
  write_appended(program(), carrier_, file("a.so"));
  EXPECT_EQ(bytes("a.so").substr(0, 5000), std::string(5000, '\7'));
  const Program read = read_appended(file("a.so"));
  EXPECT_EQ(to_string(read), to_string(program()));
  EXPECT_EQ(read.constant_bytes, program().constant_bytes);
  EXPECT_TRUE(std::equal(read.constants.get(), read.constants.get() + read.constant_bytes,
                         program().constants.get()));
}

TEST_F(Appended, ConstantsInAnotherFile) {
  write_appended(program(), carrier_, file("a.so"), "a.bin");
  EXPECT_EQ(fs::file_size(file("a.bin")), program().constant_bytes);
  EXPECT_LT(fs::file_size(file("a.so")), program().constant_bytes);
  const Program read = read_appended(file("a.so"));
  EXPECT_TRUE(std::equal(read.constants.get(), read.constants.get() + read.constant_bytes,
                         program().constants.get()));
  write("a.bin", "short");
  EXPECT_THROW(read_appended(file("a.so")), Error);
  fs::remove(file("a.bin"));
  EXPECT_THROW(read_appended(file("a.so")), Error);
  EXPECT_THROW(write_appended(program(), carrier_, file("b.so"), "/elsewhere/a.bin"), Error);
}

TEST_F(Appended, RefusesTruncatedAndAlteredFiles) {
  write_appended(program(), carrier_, file("a.so"), "a.bin");
  const std::string whole = bytes("a.so");
  for (std::size_t cut = 1; cut < whole.size(); cut += cut < 200 ? 1 : 997) {
    write("cut.so", whole.substr(0, whole.size() - cut));
    EXPECT_THROW(read_appended(file("cut.so")), Error) << cut;
  }
  write("cut.so", "");
  EXPECT_THROW(read_appended(file("cut.so")), Error);
  // The trailer, byte by byte.
  for (std::size_t back = 1; back <= 48 + 5; ++back) {
    std::string changed = whole;
    changed[changed.size() - back] = static_cast<char>(changed[changed.size() - back] ^ 0x41);
    write("cut.so", changed);
    EXPECT_THROW(read_appended(file("cut.so")), Error) << back;
  }
}

TEST_F(Appended, SharedObject) {
  models::write_shared_object(program(), file("model.so"));
  EXPECT_EQ(bytes("model.so").substr(1, 3), "ELF");
  EXPECT_EQ(to_string(read_appended(file("model.so"))), to_string(program()));
}

}  // namespace
}  // namespace tenon::appended_test
