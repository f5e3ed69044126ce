// Out-of-memory errors. A child process, which has no memory left over from other tests, limits its
// address space and runs a command.
#include "base/error.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "program/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace tenon::out_of_memory_test {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsLimitable = false;
#else
constexpr bool kIsLimitable = true;
#endif

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;

std::uint64_t address_space_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Outcome {
  int code = -1;  // -1: ended by a signal
  std::string errors;
};

constexpr const char* kWords = "TENON_TEST_WORDS";
constexpr const char* kSpare = "TENON_TEST_SPARE_MEGABYTES";

int compile_alone(const std::string& path) {
  const Graph graph = models::load_model(path);
  try {
    codegen::compile(graph, driver::cpu_options());
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  return 0;
}

// Body of the child process, not a test.
TEST(OutOfMemoryChild, DISABLED_RunsACommand) {
  if (std::getenv(kWords) == nullptr) GTEST_SKIP() << "nothing to run";
  std::vector<std::string> words = split(std::getenv(kWords), '\n');
  const std::uint64_t bytes = address_space_bytes() + std::stoull(std::getenv(kSpare)) * kMegabyte;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(98);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const int code =
      words[1] == "compile-alone"
          ? compile_alone(words[2])
          : cli::run_command_line(static_cast<int>(arguments.size()), arguments.data());
  std::cerr.flush();
  _exit(code);
}

// Runs the command in a child process whose limit is its present size plus `spare_megabytes`.
Outcome call_limited(std::uint64_t spare_megabytes, std::vector<std::string> words) {
  words.insert(words.begin(), "tenon");
  const std::string text = join(words, "\n"), spare = std::to_string(spare_megabytes);
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    setenv(kWords, text.c_str(), 1);
    setenv(kSpare, spare.c_str(), 1);
    // The child runs one test, regardless of the shard of this process.
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "tenon-unit-tests", "--gtest_filter=OutOfMemoryChild.*",
          "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
    _exit(97);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    outcome.errors.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class OutOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kIsLimitable) GTEST_SKIP() << "a sanitizer takes all of the address space for itself";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  static void expect_names(const Outcome& outcome, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.code, 5) << outcome.errors;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.errors.find(part), std::string::npos) << "no \"" << part << "\" in:\n"
                                                              << outcome.errors;
    }
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("tenon_memory_" + std::to_string(getpid()));
};

// The product of two thin matrices has 1 GiB.
constexpr const char* kWide = R"(graph wide (x: f32[16384, 8]) {
  w = constant f32[8, 16384] normal(seed = 1, mean = 0.0, deviation = 0.3)
  v = constant f32[16384, 8] normal(seed = 2, mean = 0.0, deviation = 0.3)
  wide_value = matmul(x, w)
  y = matmul(wide_value, v)
  return y
}
)";

TEST_F(OutOfMemory, ArenaErrorNamesTheLargestBuffers) {
  write_program(codegen::compile(parse_graph(kWide, all_ops()), driver::cpu_options()).program,
                file("wide.tnn"));
  expect_names(call_limited(300, {"run", file("wide.tnn"), "--threads=2"}),
               {"error: no memory for the values between steps", "step 0 ('matmul wide_value')",
                "1 GiB wanted", "the largest alive there: 'wide_value' 1 GiB"});
}

// A result that is computed in place takes no memory of its own.
TEST_F(OutOfMemory, CountsInPlaceBuffersOnce) {
  const std::string text = std::string(kWide).replace(
      std::string(kWide).find("  y = "), 23, "  bent = tanh(wide_value)\n  y = matmul(bent");
  write_program(codegen::compile(parse_graph(text, all_ops()), driver::cpu_options()).program,
                file("bent.tnn"));
  expect_names(call_limited(300, {"run", file("bent.tnn"), "--threads=2"}),
               {"where 1 GiB are alive", "1 GiB wanted"});
}

TEST_F(OutOfMemory, ReferenceErrorNamesTheNode) {
  expect_names(call_limited(300, {"run", put("wide.tenon", kWide), "--target=reference"}),
               {"error: out of memory for a tensor of f32[16384, 16384", "'wide_value'", "1 GiB"});
}

TEST_F(OutOfMemory, NamesInputsAndOutputs) {
  const std::string model =
      put("row.tenon", "graph (row: f32[n]) {\n  y = neg(row)\n  return y\n}\n");
  expect_names(call_limited(300, {"run", model, "--target=reference", "--shapes=row:268435456"}),
               {"error: out of memory for a tensor of f32[268435456]", "input 'row'", "1 GiB"});
  const std::string table = put("table.tenon", R"(graph (row: f32[n, 1], column: f32[1, n]) {
  table = mul(row, column)
  return table
}
)");
  expect_names(call_limited(300, {"run", table, "--target=cpu", "--shapes=row:16384x1",
                                  "--shapes=column:1x16384"}),
               {"error: no memory for the outputs", "output 'table', the largest", "1 GiB"});
}

TEST_F(OutOfMemory, MappingErrorNamesTheProgram) {
  Program program =
      codegen::compile(parse_graph("graph (x: f32[4]) {\n  y = neg(x)\n  return y\n}\n", all_ops()),
                       driver::cpu_options())
          .program;
  program.constant_bytes = 200 * kMegabyte;
  void* zeros =
      mmap(nullptr, program.constant_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  program.constants = std::shared_ptr<const std::byte>(
      static_cast<const std::byte*>(zeros),
      [](const std::byte* data) { munmap(const_cast<std::byte*>(data), 200 * kMegabyte); });
  write_program(program, file("large.tnn"));
  program = {};
  expect_names(call_limited(100, {"run", file("large.tnn")}),
               {"error: no memory to map the program and its constants", "large.tnn", "200 MiB"});
}

TEST_F(OutOfMemory, NamesWeightsOfAModel) {
  models::save_model(parse_graph(R"(graph (x: f32[1, 4096]) {
  first_weight = constant f32[4096, 16] uniform(seed = 1, low = 0.0, high = 1.0)
  second_weight = constant f32[16, 2097152] uniform(seed = 1, low = 0.0, high = 1.0)
  h = matmul(x, first_weight)
  y = matmul(h, second_weight)
  return y
}
)",
                                 all_ops()),
                     "onnx", file("weights.onnx"));
  // Enough to map the file of 128 MiB, but not to copy its weights as well.
  expect_names(call_limited(180, {"show", file("weights.onnx")}),
               {"error: no memory for a weight", "initializer 'second_weight'", "128 MiB wanted"});
  expect_names(call_limited(60, {"show", file("weights.onnx")}),
               {"error: no memory to map a file", "weights.onnx", "128 MiB"});
}

TEST_F(OutOfMemory, PackingErrorNamesTheLargestConstant) {
  const std::string model = put("weights.tenon", R"(graph (x: f32[3, 2048]) {
  small_weight = constant f32[2048, 16] uniform(seed = 1, low = 0.0, high = 1.0)
  large_weight = constant f32[2048, 32768] uniform(seed = 1, low = 0.0, high = 1.0)
  y = matmul(x, small_weight)
  z = matmul(x, large_weight)
  return y, z
}
)");
  expect_names(call_limited(100, {"compile-alone", model}),
               {"no memory for the packed constants", "'large_weight', the largest: 256 MiB",
                "256 MiB wanted for 2"});
  // Enough for the packed constants, but not for an unpacked one as well.
  expect_names(call_limited(400, {"compile-alone", model}),
               {"out of memory for a tensor of f32[2048, 32768]", "constant 'large_weight'"});
}

// Every failed allocation ends in the same exit code and one message.
TEST_F(OutOfMemory, EveryLimitGivesTheSameExitCode) {
  models::save_model(models::load_model("zoo:mlp"), "onnx", file("mlp.onnx"));
  int failures = 0;
  for (std::uint64_t spare = 0; spare <= 40; spare += 5) {
    for (const char* target : {"--target=cpu", "--target=reference"}) {
      const Outcome outcome = call_limited(spare, {"run", file("mlp.onnx"), target});
      if (outcome.code == 0) continue;
      ++failures;
      EXPECT_EQ(outcome.code, 5) << spare << " MB, " << target << ": " << outcome.errors;
      EXPECT_NE(outcome.errors.find("memory"), std::string::npos) << outcome.errors;
    }
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace tenon::out_of_memory_test
