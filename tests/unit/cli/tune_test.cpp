#include "app/compile_request.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "tune/cache.h"
#include "unit/cli/called.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace tenon::cli::tune_test {
namespace {

namespace fs = std::filesystem;

// Fixture with a tuning cache in a temporary folder.
class TuneCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    std::ofstream(file("model.tenon")) << R"(graph (x: f32[5, 48]) {
  w = constant f32[48, 64] normal(seed = 1, mean = 0.0, deviation = 0.1)
  a = matmul(x, w)
  b = relu(a)
  y = softmax(b) {axis = -1}
  return y
}
)";
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    fs::remove_all(folder_);
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("tenon_tune_" + std::to_string(getpid()));
  std::string before_;
};

TEST_F(TuneCommand, ShowExportImportAndClear) {
  EXPECT_TRUE(has(call({"tune", "--show"}).out, ": 0 kernels"));
  const Called tuned = call({"tune", file("model.tenon"), "--threads=1"});
  EXPECT_EQ(tuned.code, 0) << tuned.error;
  EXPECT_TRUE(has(tuned.out, " timed in ")) << tuned.out;
  EXPECT_TRUE(
      has(call({"tune", file("model.tenon"), "--threads=1"}).out, "tuning: 0 kernels timed"));
  const Called shown = call({"tune", "--show"});
  EXPECT_TRUE(has(shown.out, "chosen")) << shown.out;
  EXPECT_TRUE(has(shown.out, "1 thread, code by tenon ")) << shown.out;
  EXPECT_GT(call({"tune", "--show", "--all"}).out.size(), shown.out.size());
  const auto json = nlohmann::json::parse(call({"tune", "--show", "--json"}).out);
  ASSERT_FALSE(json["kernels"].empty());

  EXPECT_EQ(call({"tune", "--export", file("kept.json")}).code, 0);
  EXPECT_TRUE(has(call({"tune", "--clear"}).out, ": removed"));
  EXPECT_TRUE(has(call({"tune", "--clear"}).out, ": there is none"));
  EXPECT_EQ(call({"tune", "--import", file("kept.json")}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(call({"tune", "--show", "--json"}).out), json);
  EXPECT_TRUE(
      has(call({"tune", file("model.tenon"), "--threads=1"}).out, "tuning: 0 kernels timed"));
}

TEST_F(TuneCommand, CompilesWithCachedTimings) {
  const std::string model = file("model.tenon"), program = file("p.tnn");
  const Called tuned = call({"compile", model, "--tune", "--threads=1", "-o", program});
  EXPECT_EQ(tuned.code, 0) << tuned.error;
  EXPECT_TRUE(has(tuned.error, "tuning: ")) << tuned.error;
  const Called again = call({"compile", model, "--threads=1", "-o", program, "--print"});
  EXPECT_TRUE(has(again.out, "chosen: the fastest of ")) << again.out;
  EXPECT_EQ(again.error, "");
  EXPECT_TRUE(has(call({"compile", model, "--threads=1", "--print", "--untuned"}).out,
                  "chosen: least estimated cost"));
  const Called bench =
      call({"bench", model, "--threads=1", "--tune=5", "--iterations=1", "--steps"});
  EXPECT_EQ(bench.code, 0) << bench.error;
  EXPECT_TRUE(has(bench.out, "candidate")) << bench.out;
  EXPECT_TRUE(has(bench.error, "tuning: 0 kernels timed")) << bench.error;
}

TEST_F(TuneCommand, ReportsAndIgnoresADamagedCache) {
  const std::string model = file("model.tenon"), program = file("p.tnn"),
                    cache = *tune::tuning_cache_path();
  fs::create_directories(fs::path(cache).parent_path());
  std::ofstream(cache) << std::string(5000, 'x');
  const Called compiled = call({"compile", model, "-o", program});
  EXPECT_EQ(compiled.code, 0);
  EXPECT_TRUE(has(compiled.error, "warning: the tuning cache cannot be used")) << compiled.error;
  EXPECT_TRUE(has(compiled.error, "going on without it: estimates decide")) << compiled.error;
  const Called tuned = call({"compile", model, "--tune=0.001", "-o", program});
  EXPECT_EQ(tuned.code, 0);
  EXPECT_TRUE(has(tuned.error, "timings are forgotten at the end")) << tuned.error;
  const Called shown = call({"tune", "--show"});
  EXPECT_EQ(shown.code, static_cast<int>(ErrorKind::Device));
  EXPECT_TRUE(has(shown.error, "`tenon tune --clear` removes it")) << shown.error;
  EXPECT_TRUE(has(call({"tune", "--clear"}).out, ": removed"));
  EXPECT_EQ(call({"compile", model, "-o", program}).error, "");
}

TEST_F(TuneCommand, RefusesInvalidArguments) {
  const auto code_of = [&](std::vector<std::string> words) { return call(std::move(words)).code; };
  EXPECT_EQ(code_of({"tune"}), 2);
  EXPECT_EQ(code_of({"tune", "--show", "--clear"}), 2);
  EXPECT_EQ(code_of({"tune", file("model.tenon"), "--seconds=soon"}), 2);
  EXPECT_EQ(code_of({"compile", file("model.tenon"), "--tune=-1", "-o", file("p.tnn")}), 2);
  EXPECT_EQ(code_of({"compile", file("model.tenon"), "--tune", "--untuned", "-o", file("p.tnn")}),
            2);
  EXPECT_EQ(code_of({"tune", "--import", file("nowhere.json")}), 2);
  std::ofstream(file("bad.json"))
      << "{\"format\": \"tenon tuning\", \"version\": 1, \"kernels\": [{}]}";
  const Called imported = call({"tune", "--import", file("bad.json")});
  EXPECT_EQ(imported.code, 3);
  EXPECT_TRUE(has(imported.error, "bad.json, kernels/0/machine")) << imported.error;
  EXPECT_THROW(app::tuning_seconds("0"), Error);
  EXPECT_EQ(app::tuning_seconds("true"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(app::tuning_seconds("2.5"), 2.5);
}

// Products of many shapes: timing one is quick, timing all takes long.
std::string many_products() {
  constexpr int kCount = 64, kFirst = 32;
  std::string text = concat("graph (m0: f32[4, ", kFirst, "]) {\n");
  for (int k = 1; k <= kCount; ++k) {
    const int columns = kFirst + k;
    text += concat("  w", k, " = constant f32[", columns - 1, ", ", columns, "] normal(seed = ", k,
                   ", mean = 0.0, deviation = 0.1)\n");
    text += concat("  m", k, " = matmul(m", k - 1, ", w", k, ")\n");
  }
  return concat(text, "  return m", kCount, "\n}\n");
}

// A child process that is killed when the test ends, however the test ends.
class Child {
 public:
  Child(const fs::path& program, std::vector<std::string> arguments, const std::string& out,
        const std::string& error)
      : id_((std::fflush(nullptr), fork())) {
    if (id_ != 0) return;
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    if (std::freopen(error.c_str(), "w", stderr) == nullptr ||
        std::freopen(out.c_str(), "w", stdout) == nullptr)
      _exit(99);
    execv(program.c_str(), words.data());
    _exit(98);
  }
  Child(const Child&) = delete;
  ~Child() {
    if (!has_ended_) kill(id_, SIGKILL), wait();
  }

  bool has_ended() { return has_ended_ || (has_ended_ = waitpid(id_, &status_, WNOHANG) == id_); }
  void interrupt() const { kill(id_, SIGINT); }
  /// Returns the exit code, or the negative number of the signal that ended it.
  int wait() {
    if (!has_ended_) waitpid(id_, &status_, 0), has_ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  pid_t id_;
  int status_ = 0;
  bool has_ended_ = false;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {(std::istreambuf_iterator<char>(in)), {}};
}

// SIGINT during tuning: the program is written with the timings so far, and the next run continues
// from them.
TEST_F(TuneCommand, InterruptKeepsAUsableCache) {
  const fs::path tenon = fs::read_symlink("/proc/self/exe").parent_path() / "tenon";
  if (!fs::exists(tenon)) GTEST_SKIP() << "no tenon beside the tests";
  std::ofstream(file("many.tenon")) << many_products();
  Child tuning(
      tenon, {"tenon", "compile", file("many.tenon"), "--tune", "--threads=1", "-o", file("p.tnn")},
      file("out"), file("log"));
  const std::string cache = *tune::tuning_cache_path();
  std::size_t known = 0;
  // Waits without a time limit: a busy machine is not a failure of the command.
  while (known == 0 && !tuning.has_ended()) {
    usleep(20000);
    if (!fs::exists(cache)) continue;
    try {
      known = tune::TuningCache(cache, tune::TuningCache::Mode::Read).all().size();
    } catch (const Error&) {
      // The cache is being created.
    }
  }
  tuning.interrupt();
  EXPECT_EQ(tuning.wait(), 0);
  ASSERT_GT(known, 0U) << text_of(file("log"));
  EXPECT_TRUE(has(text_of(file("log")), "; interrupted: ")) << text_of(file("log"));
  EXPECT_TRUE(fs::exists(file("p.tnn")));
  const std::size_t kept = tune::TuningCache(cache, tune::TuningCache::Mode::Read).all().size();
  EXPECT_GE(kept, known);
  // With the same binary: the tests may be built from newer sources, whose generated kernels differ
  // from the timed ones.
  Child next(tenon, {"tenon", "tune", file("many.tenon"), "--threads=1", "--seconds=0.001"},
             file("out"), file("log"));
  EXPECT_EQ(next.wait(), 0) << text_of(file("log"));
  EXPECT_TRUE(has(text_of(file("out")), concat(kept, " known before"))) << text_of(file("out"));
}

}  // namespace
}  // namespace tenon::cli::tune_test
