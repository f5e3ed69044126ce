#include "cli/command_line.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace tenon::cli::run_test {
namespace {

namespace fs = std::filesystem;

// Returns the command's exit code and output.
std::pair<int, std::string> call(std::vector<std::string> words) {
  words.insert(words.begin(), "tenon");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ::testing::internal::CaptureStdout();
  const int code = run_command_line(static_cast<int>(arguments.size()), arguments.data());
  return {code, ::testing::internal::GetCapturedStdout()};
}

class CommandFiles : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("tenon_cli_" + std::to_string(getpid()));
};

// A program and the model that it was compiled from give the same results as the reference.
TEST_F(CommandFiles, RunsAModelAndItsProgram) {
  ASSERT_EQ(call({"compile", "zoo:mlp", "-o", file("mlp.tnn")}).first, 0);
  ASSERT_EQ(call({"run", "zoo:mlp", "--target=reference", "--save-inputs=@" + file("in"),
                  "--output=@" + file("out")})
                .first,
            0);
  for (const std::string& model : {std::string("zoo:mlp"), file("mlp.tnn")}) {
    const auto [code, text] =
        call({"run", model, "--input=@" + file("in"), "--expect=@" + file("out"), "--json"});
    EXPECT_EQ(code, 0) << text;
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["outputs"][0]["equal"], true);
    EXPECT_NE(json["by"].get<std::string>().find("steps"), std::string::npos) << json["by"];
  }
}

// The printed JSON parses and contains the requested percentiles.
TEST_F(CommandFiles, BenchPrintsPercentiles) {
  const auto [code, text] = call(
      {"bench", "zoo:mlp", "--iterations=7", "--percentiles=25,99.9", "--threads=1", "--json"});
  ASSERT_EQ(code, 0);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["samples_ms"].size(), 7U);
  EXPECT_LE(json["min_ms"].get<double>(), json["p25_ms"].get<double>());
  EXPECT_LE(json["p25_ms"].get<double>(), json["p99.9_ms"].get<double>());
  EXPECT_GT(json["compile_ms"].get<double>(), 0);
  EXPECT_GT(json["roofline_share"].get<double>(), 0);
  EXPECT_EQ(json["threads"], 1);
}

// The work of a dynamic model is counted for the shapes of the run.
TEST_F(CommandFiles, BenchCountsTheWorkOfBoundShapes) {
  std::ofstream(file("m.tenon")) << "graph (x: f32[N, 64]) {\n  w = constant f32[64, 128] splat "
                                    "0.5\n  y = matmul(x, w)\n  return y\n}\n";
  const auto rate = [&](const std::string& shape) {
    const auto [code, text] = call({"bench", file("m.tenon"), "--shapes=x:" + shape, "--threads=1",
                                    "--iterations=5", "--json"});
    EXPECT_EQ(code, 0);
    const auto json = nlohmann::json::parse(text);
    return json["gflops"].get<double>() * json["median_ms"].get<double>() * 1e6;
  };
  EXPECT_NEAR(rate("4x64"), 2.0 * 4 * 64 * 128, 1);
  EXPECT_NEAR(rate("32x64"), 2.0 * 32 * 64 * 128, 1);
  const auto [steps_code, steps] = call({"bench", file("m.tenon"), "--shapes=x:4x64", "--threads=1",
                                         "--iterations=1", "--steps", "--json"});
  EXPECT_EQ(steps_code, 0);
  const auto step = nlohmann::json::parse(steps)["steps"][0];
  EXPECT_NEAR(step["gflops"].get<double>() * step["us"].get<double>() * 1e3, 2.0 * 4 * 64 * 128, 1);
  // A program without its graph does not state its work: the field is absent, not 0.
  ASSERT_EQ(call({"compile", file("m.tenon"), "-o", file("m.tnn")}).first, 0);
  const auto [code, text] =
      call({"bench", file("m.tnn"), "--shapes=x:4x64", "--threads=1", "--iterations=5", "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(nlohmann::json::parse(text)["gflops"].is_null()) << text;
}

constexpr const char* kEndless = R"(graph (x: f32[2]) {
  n = constant i64[] 4611686018427387904
  y = loop(n, values = x) {carried_count = 1}
    body = graph (i: i64[], go: bool[], v: f32[2]) {
      w = add(v, v)
      on = constant bool[] true
      return on, w
    }
  return y
}
)";

// Both the reference evaluator and compiled programs limit iterations.
TEST_F(CommandFiles, LimitsLoopIterations) {
  std::ofstream(file("endless.tenon")) << kEndless;
  for (const std::string target : {"reference", "cpu"}) {
    ::testing::internal::CaptureStderr();
    const int code =
        call({"run", file("endless.tenon"), "--target=" + target, "--max-trips=20"}).first;
    const std::string errors = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(code, 5) << target;
    EXPECT_NE(errors.find("at most 20 runs"), std::string::npos) << errors;
  }
}

// Runs the command in a child process and interrupts it with SIGINT once its handler is installed.
int run_interrupted(const std::string& model, const std::string& target) {
  std::signal(SIGINT, SIG_DFL);  // a shell that starts the tests in the background ignores SIGINT
  std::thread([] {
    struct sigaction action = {};
    while (sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) usleep(1000);
    kill(getpid(), SIGINT);
  }).detach();
  return call({"run", model, "--target=" + target}).first;
}

TEST_F(CommandFiles, InterruptsLoops) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::ofstream(file("endless.tenon")) << kEndless;
  for (const std::string target : {"reference", "cpu"}) {
    EXPECT_EXIT(std::exit(run_interrupted(file("endless.tenon"), target)),
                ::testing::ExitedWithCode(130), "interrupted");
  }
}

TEST_F(CommandFiles, RunSummarizesAllElements) {
  std::ofstream(file("count.tenon"))
      << "graph (x: f32[2500]) {\n  one = constant f32[1] [1]\n  ones = add(x, one)\n"
         "  y = cumsum(ones) {axis = 0}\n  return y\n}\n";
  const auto [code, text] = call({"run", file("count.tenon"), "--input=x:zeros", "--json"});
  ASSERT_EQ(code, 0) << text;
  const auto output = nlohmann::json::parse(text)["outputs"][0];
  EXPECT_EQ(output["least"], 1);
  EXPECT_EQ(output["mean"], 1250.5);
  EXPECT_EQ(output["greatest"], 2500);
}

TEST_F(CommandFiles, BenchListsStepsOfComposedPrograms) {
  const std::string model = "tests/fixtures/programs/branch.tenon";
  const auto [code, text] = call({"bench", model, "--steps", "--iterations=2", "--threads=1"});
  ASSERT_EQ(code, 0);
  EXPECT_NE(text.find("operators"), std::string::npos) << text;
  EXPECT_NE(text.find("loops"), std::string::npos) << text;
  EXPECT_NE(call({"run", model, "--threads=1"}).second.find("2 steps"), std::string::npos);
}

TEST_F(CommandFiles, BenchRefusesInvalidPercentiles) {
  EXPECT_EQ(call({"bench", "zoo:mlp", "--percentiles=50,x"}).first, 2);
  EXPECT_EQ(call({"bench", "zoo:mlp", "--percentiles=101"}).first, 2);
}

}  // namespace
}  // namespace tenon::cli::run_test
