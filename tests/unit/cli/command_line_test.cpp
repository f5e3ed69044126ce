// The `tenon` command from outside: arguments, numbers, files, pipes.
#include "base/text.h"
#include "runtime/cuda/describe.h"
#include "unit/cli/called.h"
#include "unit/needs_documents.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tenon::cli::command_line_test {
namespace {

namespace fs = std::filesystem;

using CommandLineTest = WithFolder;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CommandLine, PrintsVersionAndHelp) {
  const Called version = call({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("tenon ", 0), 0U) << version.out;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"}, {"help"}, {"help", "help"}}) {
    const Called help = call(words);
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(has(help.out, "conformance")) << help.out;
  }
  EXPECT_EQ(call({"help", "bench"}).out, call({"bench", "--help"}).out);
  EXPECT_TRUE(has(call({"help", "bench"}).out, "--iterations"));
}

TEST(CommandLine, SuggestsTheNearestSubcommand) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"benhc"}, {"help", "benhc"}}) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 2);
    EXPECT_TRUE(has(called.error, "did you mean 'bench'?")) << called.error;
  }
}

TEST(CommandLine, PrintsUsageWithoutArguments) {
  const Called called = call({});
  EXPECT_EQ(called.code, 2);
  EXPECT_TRUE(has(called.error, "`tenon help` lists them")) << called.error;
}

TEST(CommandLine, RefusesNumbersOutOfRange) {
  const std::vector<std::vector<std::string>> cases = {
      {"run", "zoo:mlp", "--threads=-1"},
      {"run", "zoo:mlp", "--threads=0"},
      {"run", "zoo:mlp", "--threads=99999999999999999999"},
      {"run", "zoo:mlp", "--threads=1.5"},
      {"run", "zoo:mlp", "--threads="},
      {"run", "zoo:mlp", "--rtol=-1"},
      {"run", "zoo:mlp", "--atol=nan"},
      {"run", "zoo:mlp", "--atol=inf"},
      {"compile", "zoo:mlp", "-o", "x.tnn", "--threads=0"},
      {"compile", "zoo:mlp", "-o", "x.tnn", "--tune=0"},
      {"bench", "zoo:mlp", "--threads=-1"},
      {"bench", "zoo:mlp", "--threads=0"},
      {"bench", "zoo:mlp", "--iterations=0"},
      {"bench", "zoo:mlp", "--iterations=-5"},
      {"bench", "zoo:mlp", "--min-iterations=0"},
      {"bench", "zoo:mlp", "--max-iterations=0"},
      {"bench", "zoo:mlp", "--min-iterations=5", "--max-iterations=4"},
      {"bench", "zoo:mlp", "--duration=-1"},
      {"bench", "zoo:mlp", "--duration=nan"},
      {"bench", "zoo:mlp", "--warm-up=-1"},
      {"tune", "zoo:mlp", "--threads=0"},
      {"tune", "zoo:mlp", "--seconds=0"},
      {"tune", "zoo:mlp", "--seconds=-3"},
      {"opt", "zoo:mlp", "--trials=0"},
      {"convert", "zoo:mlp", "--to=onnx", "-o", "x.onnx", "--opset=0"},
      {"convert", "zoo:mlp", "--to=onnx", "-o", "x.onnx", "--opset=-1"},
      {"conformance", "tests", "--atol=-1"},
      {"conformance", "tests", "--rtol=x"},
  };
  for (const std::vector<std::string>& words : cases) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 2) << join(words, " ") << "\n" << called.error;
    EXPECT_TRUE(has(called.error, "error: ")) << called.error;
    EXPECT_EQ(called.out, "");
  }
  EXPECT_TRUE(has(call({"run", "zoo:mlp", "--threads=-1"}).error,
                  "--threads: expected a whole number from 1 to"));
}

TEST_F(CommandLineTest, RefusesAFilterWithoutMatches) {
  fs::create_directories(file("test_relu"));
  std::ofstream(file("test_relu/model.onnx")) << "x";
  const Called called = call({"conformance", file(""), "--filter=nothing"});
  EXPECT_EQ(called.code, 2);
  EXPECT_TRUE(has(called.error, "no case is called 'nothing'")) << called.error;
  EXPECT_EQ(call({"conformance", file(""), "--filter=relu"}).code, 1);
}

// An output path that cannot be written fails before the work, with the system's reason.
TEST_F(CommandLineTest, ReportsFoldersThatCannotBeCreated) {
  std::ofstream(file("plain")) << "x";
  for (const char* option : {"--output=@", "--save-inputs=@"}) {
    for (const char* command : {"run", "bench"}) {
      for (const char* folder : {"plain/out", "plain"}) {
        const Called called = call({command, "zoo:mlp", option + file(folder)});
        EXPECT_EQ(called.code, 2) << called.error;
        EXPECT_TRUE(has(called.error, "cannot make the folder '" + file(folder) +
                                          "'\n  got       Not a directory"))
            << called.error;
      }
    }
  }
}

TEST_F(CommandLineTest, ReportsFilesThatCannotBeWritten) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"convert", "zoo:mlp", "--to=onnx", "-o", file("no/x.onnx")},
           {"compile", "zoo:mlp", "--untuned", "-o", file("no/x.tnn")},
           {"opt", "zoo:mlp", "-o", file("no/x.tenon")}}) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 2);
    EXPECT_TRUE(has(called.error, "No such file or directory")) << called.error;
  }
  const Called full = call({"convert", "zoo:mlp", "--to=tenon", "-o", "/dev/full"});
  EXPECT_EQ(full.code, 6);
  EXPECT_TRUE(has(full.error, "No space left on device")) << full.error;
  const Called none = call({"show", file("none.onnx")});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.error, "No such file or directory")) << none.error;
}

// Output that is lost on a full disk, or has no file, is an error of any command.
TEST_F(CommandLineTest, ReportsOutputThatCannotBeWritten) {
  const auto code_with = [](int target, std::vector<const char*> words) {
    std::fflush(stdout);
    const int own = dup(STDOUT_FILENO);
    words.insert(words.begin(), "tenon");
    if (target >= 0) {
      dup2(target, STDOUT_FILENO);
    } else {
      close(STDOUT_FILENO);
    }
    const int code =
        run_command_line(static_cast<int>(words.size()), const_cast<char**>(words.data()));
    dup2(own, STDOUT_FILENO);
    close(own);
    return code;
  };
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(code_with(full, {"run", "zoo:mlp", "--target=reference"}), 6);
  EXPECT_EQ(code_with(full, {"show", "zoo:resnet18", "--nodes", "--json"}), 6);
  EXPECT_EQ(code_with(full, {"help"}), 6);
  EXPECT_EQ(code_with(full, {"--version"}), 6);
  EXPECT_NE(code_with(-1, {"ops"}), 0);
  EXPECT_TRUE(has(::testing::internal::GetCapturedStderr(), "cannot write '/dev/stdout'"));
  close(full);
  EXPECT_EQ(call({"--version"}).code, 0);
}

// Sequences and optionals are written as one file per element and compared with such files.
TEST_F(CommandLineTest, SavesAndComparesSequences) {
  std::ofstream(file("m.tenon")) << R"(graph (x: f32[3, 2]) {
  a = split_to_sequence(x)
  b = optional(x)
  c = optional() {type = f32[2]}
  d = sequence_empty()
  e = relu(x)
  return a, b, c, d, e
}
)";
  const std::string model = file("m.tenon"), out = "@" + file("out"), in = "@" + file("in");
  fs::create_directories(file("out/a.items"));
  std::ofstream(file("out/a.items/0.npy")) << "of an earlier run";
  std::ofstream(file("out/a.items/3.npy")) << "out of the row, and so not Tenon's";
  const Called saved =
      call({"run", model, "--target=reference", "--output=" + out, "--save-inputs=" + in});
  ASSERT_EQ(saved.code, 0) << saved.error;
  for (const char* name :
       {"a.items/0.npy", "a.items/2.npy", "b.items/0.npy", "c.items", "d.items", "e.npy"}) {
    EXPECT_TRUE(fs::exists(file("out") + "/" + name)) << name;
  }
  EXPECT_TRUE(fs::is_empty(file("out/c.items")));
  fs::remove(file("out/a.items/3.npy"));
  const Called equal = call({"run", model, "--input=" + in, "--expect=" + out, "--threads=1"});
  EXPECT_EQ(equal.code, 0) << equal.out << equal.error;
  fs::copy_file(file("out/a.items/0.npy"), file("out/a.items/1.npy"),
                fs::copy_options::overwrite_existing);
  const Called different = call({"run", model, "--input=" + in, "--expect=" + out, "--threads=1"});
  EXPECT_EQ(different.code, 1);
  EXPECT_TRUE(has(different.out, "item 1: element 0")) << different.out;
  fs::remove(file("out/a.items/2.npy"));
  EXPECT_TRUE(has(call({"run", model, "--input=" + in, "--expect=" + out, "--threads=1"}).out,
                  "3 items instead of 2"));
  // Files of an earlier, longer sequence are removed.
  ASSERT_EQ(call({"run", model, "--output=" + out, "--threads=1"}).code, 0);
  EXPECT_TRUE(fs::exists(file("out/a.items/2.npy")));
}

// With --json, every subcommand prints only JSON.
TEST_F(CommandLineTest, EverySubcommandPrintsJson) {
  std::ofstream(file("m.tenon")) << "graph (x: f32[3, 4]) {\n  y = relu(x)\n  return y\n}\n";
  const std::string model = file("m.tenon");
  setenv("XDG_CACHE_HOME", file("cache").c_str(), 1);
  const std::vector<std::vector<std::string>> cases = {
      {"show", model},
      {"show", model, "--nodes"},
      {"check", model},
      {"convert", model, "--to=onnx", "-o", file("m.onnx")},
      {"run", model, "--threads=1"},
      {"opt", model},
      {"compile", model, "-o", file("m.tnn")},
      {"compile", model, "--print"},
      {"compile", model, "--print", "-o", file("m.tnn")},
      {"compile", model, "--print-code"},
      {"bench", model, "--threads=1", "--iterations=1"},
      {"bench", model, "--threads=1", "--iterations=1", "--steps"},
      {"tune", model, "--threads=1"},
      {"tune", "--show"},
      {"tune", "--export=" + file("t.json")},
      {"tune", "--import=" + file("t.json")},
      {"tune", "--clear"},
      {"explain", model, "y"},
      {"ops"},
      {"ops", "relu"},
      {"doctor"},
  };
  for (std::vector<std::string> words : cases) {
    words.push_back("--format=json");
    const Called called = call(words);
    EXPECT_EQ(called.code, 0) << join(words, " ") << "\n" << called.error;
    EXPECT_TRUE(nlohmann::json::accept(called.out)) << join(words, " ") << "\n" << called.out;
    EXPECT_EQ(call({words[0], "--format=xml"}).code, 2);
  }
  unsetenv("XDG_CACHE_HOME");
}

TEST_F(CommandLineTest, BenchJsonListsSteps) {
  const Called called =
      call({"bench", "zoo:mlp", "--threads=1", "--iterations=1", "--steps", "--json"});
  const auto json = nlohmann::json::parse(called.out);
  ASSERT_FALSE(json["steps"].empty());
  EXPECT_GT(json["steps"][0]["us"].get<double>(), 0);
}

// Output that does not go to a terminal is plain text.
TEST_F(CommandLineTest, NoEscapeCodesWithoutATerminal) {
  const Called called = call({"opt", "zoo:mlp", "--verify-each", "--trials=1", "--time-passes"});
  EXPECT_EQ(called.code, 0);
  EXPECT_EQ(called.error.find('\033'), std::string::npos) << called.error;
  EXPECT_EQ(called.out.find('\033'), std::string::npos);
}

class Pipes : public WithFolder {
 protected:
  void SetUp() override {
    WithFolder::SetUp();
    const fs::path tenon = fs::read_symlink("/proc/self/exe").parent_path() / "tenon";
    if (!fs::exists(tenon)) GTEST_SKIP() << "no tenon beside the tests";
    tenon_ = tenon.string();
  }
  // Runs a line of shell in which TENON is the command.
  Called shell(std::string line) const {
    for (std::size_t at = line.find("TENON"); at != std::string::npos;
         at = line.find("TENON", at + tenon_.size())) {
      line.replace(at, 5, tenon_);
    }
    Called called;
    called.code = WEXITSTATUS(
        std::system(("{ " + line + "; } >" + file("stdout") + " 2>" + file("stderr")).c_str()));
    called.out = content_of(file("stdout"));
    called.error = content_of(file("stderr"));
    return called;
  }

 private:
  std::string tenon_;
};

TEST_F(Pipes, ReadsModelsOfEveryFormat) {
  ASSERT_EQ(call({"convert", "zoo:mlp", "--to=onnx", "-o", file("m.onnx")}).code, 0);
  ASSERT_EQ(call({"convert", "zoo:mlp", "--to=tenon", "-o", file("m.tenon")}).code, 0);
  std::vector<std::string> names = {"m.onnx", "m.tenon"};
  if (!documents::document_formats().empty()) {
    fs::copy_file("tests/fixtures/mlp_chainer.graph.txt", file("m.chainer"));
    names.emplace_back("m.chainer");
  }
  for (const std::string& name : names) {
    const std::string model = file(name);
    const Called direct = shell("TENON show " + model);
    ASSERT_EQ(direct.code, 0) << direct.error;
    for (const char* from : {" - ", " /dev/stdin "}) {
      for (const std::string& before : {"cat " + model + " | ", "< " + model + " "}) {
        const Called piped = shell(before + "TENON show" + from);
        EXPECT_EQ(piped.code, 0) << before << from << piped.error;
        EXPECT_EQ(piped.out, direct.out) << before << from;
      }
      EXPECT_EQ(shell("cat " + model + " | TENON check" + from).code, 0) << from;
    }
    EXPECT_EQ(
        shell("cat " + model + " | TENON convert - --to=tenon -o /dev/stdout | TENON check -").code,
        0);
  }
  EXPECT_EQ(shell("cat " + file("m.onnx") + " | TENON run - --threads=1").code, 0);
  EXPECT_EQ(shell("cat " + file("m.onnx") + " | TENON compile - --print -o " + file("m.tnn")).code,
            0);
}

TEST_F(Pipes, RefusesUnknownFormats) {
  const Called empty = shell("TENON check - </dev/null");
  EXPECT_EQ(empty.code, 3) << empty.error;
  EXPECT_TRUE(has(empty.error, "standard input")) << empty.error;
}

// Redirected standard output is written in place, not replaced by a renamed file.
TEST_F(Pipes, WritesToStandardOutputInPlace) {
  ASSERT_TRUE(fs::is_symlink("/dev/stdout"));
  const Called called = shell("echo before; TENON convert zoo:mlp --to=tenon -o /dev/stdout");
  EXPECT_EQ(called.code, 0) << called.error;
  EXPECT_EQ(called.out.rfind("before\ngraph ", 0), 0U) << called.out.substr(0, 100);
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
}

// Three processes that write one program at once all succeed, and the file is complete.
TEST_F(Pipes, ParallelCompilesOfOneFile) {
  const std::string one = "TENON compile zoo:mlp --untuned -o " + file("m.tnn");
  const Called called =
      shell(one + " & a=$!; " + one + " & b=$!; " + one + " & c=$!; wait $a && wait $b && wait $c");
  EXPECT_EQ(called.code, 0) << called.error;
  EXPECT_EQ(called.error, "");
  EXPECT_EQ(call({"run", file("m.tnn"), "--threads=1"}).code, 0);
  for (const auto& entry : fs::directory_iterator(file(""))) {
    EXPECT_FALSE(entry.path().filename().string().ends_with(".part")) << entry.path();
  }
}

// Without HOME the cache is in the home folder that the system records, never in the current
// folder.
TEST_F(Pipes, CacheFolderWithoutHome) {
  const Called called =
      shell("cd " + file("") + " && env -u HOME -u XDG_CACHE_HOME TENON tune --show");
  EXPECT_EQ(called.code, 0) << called.error;
  EXPECT_EQ(called.out[0], '/') << called.out;
  EXPECT_FALSE(fs::exists(file(".cache")));
}

// Without the device the command fails instead of writing an untuned program: candidates from
// libraries are timed on the device.
TEST(CommandLine, TuningForAGpuNeedsADevice) {
  try {
    GTEST_SKIP() << "there is one: " << cuda::device_name();
  } catch (const Error&) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"compile", "zoo:mlp", "--target=cuda", "--tune", "-o",
                                   "unused.tnn"},
          std::vector<std::string>{"tune", "zoo:mlp", "--target=cuda"}}) {
      const Called called = call(command);
      EXPECT_EQ(called.code, 6);
      EXPECT_TRUE(has(called.error, "NVIDIA")) << called.error;
    }
  }
}

}  // namespace
}  // namespace tenon::cli::command_line_test
