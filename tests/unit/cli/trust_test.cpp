// A program is machine code: it runs only under its own file extension or with explicit trust.
#include "unit/cli/called.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::cli::trust_test {
namespace {

namespace fs = std::filesystem;

class Trust : public WithFolder {
 protected:
  void SetUp() override {
    WithFolder::SetUp();
    ASSERT_EQ(call({"compile", "zoo:mlp", "--untuned", "-o", file("mlp.tnn")}).code, 0);
  }
};

TEST_F(Trust, RefusesProgramsWithOtherExtensions) {
  for (const char* name : {"mlp.onnx", "mlp", "mlp.tnn.onnx"}) {
    fs::copy_file(file("mlp.tnn"), file(name), fs::copy_options::overwrite_existing);
    for (const char* command : {"run", "bench"}) {
      const Called called = call({command, file(name), "--threads=1"});
      EXPECT_EQ(called.code, 3) << command << " " << name;
      EXPECT_TRUE(has(called.error, "machine code")) << called.error;
      EXPECT_TRUE(has(called.error, "--trust-program")) << called.error;
      EXPECT_EQ(called.out, "");
    }
  }
}

TEST_F(Trust, RunsProgramsByExtensionOrTrust) {
  EXPECT_EQ(call({"run", file("mlp.tnn"), "--threads=1"}).code, 0);
  fs::copy_file(file("mlp.tnn"), file("mlp.onnx"));
  EXPECT_EQ(call({"run", file("mlp.onnx"), "--threads=1", "--trust-program"}).code, 0);
  EXPECT_EQ(
      call({"bench", file("mlp.onnx"), "--threads=1", "--iterations=1", "--trust-program"}).code,
      0);
}

TEST_F(Trust, WarnsWhenCompilingToAnotherExtension) {
  EXPECT_EQ(call({"compile", "zoo:mlp", "--untuned", "-o", file("again.tnn")}).error, "");
  const Called called = call({"compile", "zoo:mlp", "--untuned", "-o", file("mlp.bin")});
  EXPECT_EQ(called.code, 0);
  EXPECT_TRUE(has(called.error, "only from FILE.tnn")) << called.error;
}

// Commands that read only models refuse a program with a message that says so.
TEST_F(Trust, ModelCommandsRefusePrograms) {
  const std::string program = file("mlp.tnn");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"opt", program},
           {"compile", program, "-o", file("again.tnn")},
           {"convert", program, "--to=onnx", "-o", file("back.onnx")},
           {"explain", program, "x"}}) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 2) << words[0] << called.error;
    EXPECT_TRUE(has(called.error, "no model any more")) << called.error;
  }
}

// The reference evaluator runs graphs; a user who requests it does not expect machine code to run.
TEST_F(Trust, ReferenceRefusesPrograms) {
  const Called called = call({"run", file("mlp.tnn"), "--target=reference"});
  EXPECT_EQ(called.code, 2);
  EXPECT_TRUE(has(called.error, "which the reference evaluator does not run")) << called.error;
  EXPECT_TRUE(has(called.error, "give the model that it was compiled from")) << called.error;
  EXPECT_EQ(call({"run", file("mlp.tnn"), "--target=nonsense"}).code, 2);
  EXPECT_EQ(call({"run", file("mlp.tnn"), "--target=cpu", "--threads=1"}).code, 0);
}

TEST_F(Trust, RefusesProgramsFromPipes) {
  const std::string command =
      "cat " + file("mlp.tnn") + " | " +
      (fs::read_symlink("/proc/self/exe").parent_path() / "tenon").string() +
      " run - --trust-program >" + file("log") + " 2>&1";
  if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / "tenon"))
    GTEST_SKIP() << "no tenon beside the tests";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  std::ifstream log(file("log"));
  EXPECT_TRUE(has(std::string(std::istreambuf_iterator<char>(log), {}),
                  "a program is not read from a pipe"));
}

}  // namespace
}  // namespace tenon::cli::trust_test
