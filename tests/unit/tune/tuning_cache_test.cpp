#include "base/error.h"
#include "tune/cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tenon::tuning_cache_test {
namespace {

class TuningCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              concat("tenon_tuning_", std::int64_t{getpid()});
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "deeper" / "tuning.sqlite").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  tune::TuningCache writer() const { return {path_, tune::TuningCache::Mode::Write}; }
  tune::TuningCache reader() const { return {path_, tune::TuningCache::Mode::Read}; }

  static std::string message(const std::function<void()>& work,
                             ErrorKind kind = ErrorKind::Device) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::filesystem::path folder_;
  std::string path_;
};

tune::TunedKernel some_kernel(const std::string& work, int threads = 2) {
  tune::TunedKernel kernel;
  kernel.place = {"a machine", "a generator", threads};
  kernel.work = work;
  kernel.name = "y";
  kernel.symbol = "N";
  kernel.flops = 12.5;
  kernel.timings = {{"tiles 6x16", 1, 0.25, 3}, {"loops", 1, 0.5, 1}, {"tiles 6x16", 9, 0.75, 3}};
  kernel.ranges = {{0, 4, "tiles 6x16"}, {5, 64, "loops"}};
  return kernel;
}

void expect_equal(const tune::TunedKernel& a, const tune::TunedKernel& b) {
  EXPECT_EQ(tune::to_json({a}), tune::to_json({b}));
}

TEST_F(TuningCacheTest, StoresAndFindsTimings) {
  {
    tune::TuningCache cache = writer();
    cache.store(some_kernel("one"));
    cache.store(some_kernel("two\nlines with 'quotes' and \"more\""));
    cache.store(some_kernel("one", 1));
    tune::TunedKernel again = some_kernel("one");
    again.ranges = {{0, 64, "loops"}};
    cache.store(again);  // replaces the first
  }
  const tune::TuningCache cache = reader();
  EXPECT_EQ(cache.all().size(), 3U);
  const auto found = cache.find({"a machine", "a generator", 2}, "one");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ranges.size(), 1U);
  EXPECT_EQ(found->timings.size(), 3U);
  expect_equal(*cache.find({"a machine", "a generator", 1}, "one"), some_kernel("one", 1));
  // Timings of other machines, generators, thread counts and kernels do not apply.
  EXPECT_FALSE(cache.find({"another machine", "a generator", 2}, "one"));
  EXPECT_FALSE(cache.find({"a machine", "another generator", 2}, "one"));
  EXPECT_FALSE(cache.find({"a machine", "a generator", 3}, "one"));
  EXPECT_FALSE(cache.find({"a machine", "a generator", 2}, "three"));
}

TEST_F(TuningCacheTest, ConcurrentProcessesWrite) {
  constexpr int kProcesses = 4, kKernels = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      int status = 0;
      try {
        tune::TuningCache cache = writer();
        for (int k = 0; k < kKernels; ++k) {
          cache.store(some_kernel(concat("of ", p, " number ", k)));
          cache.store(some_kernel(concat("shared ", k)));
        }
      } catch (const Error&) {
        status = 1;
      }
      _exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(reader().all().size(), static_cast<std::size_t>((kProcesses + 1) * kKernels));
}

// A process that is killed while it writes loses at most the kernel in progress.
TEST_F(TuningCacheTest, KilledWriterLeavesCompleteKernels) {
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      tune::TuningCache cache = writer();
      for (int k = 0;; ++k) cache.store(some_kernel(concat("round ", round, " number ", k)));
    }
    usleep(40000 + 15000 * static_cast<unsigned>(round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    tune::TuningCache cache = writer();
    for (const tune::TunedKernel& kernel : cache.all()) {
      ASSERT_EQ(problem_of(kernel), std::nullopt);
      expect_equal(kernel, some_kernel(kernel.work));
    }
    cache.store(some_kernel("after"));
    EXPECT_TRUE(cache.find({"a machine", "a generator", 2}, "after"));
  }
}

TEST_F(TuningCacheTest, RefusesOtherFiles) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  std::ofstream(path_)
      << "this is a text and no database, and long enough to be taken for one by nobody";
  for (const auto access : {tune::TuningCache::Mode::Read, tune::TuningCache::Mode::Write}) {
    const std::string text = message([&] { tune::TuningCache(path_, access); });
    EXPECT_NE(text.find("the tuning cache cannot be used"), std::string::npos) << text;
    EXPECT_NE(text.find("`tenon tune --clear` removes it"), std::string::npos) << text;
  }
  EXPECT_TRUE(tune::clear_tuning_cache(path_));
  EXPECT_FALSE(tune::clear_tuning_cache(path_));
  writer().store(some_kernel("one"));
  EXPECT_EQ(reader().all().size(), 1U);
}

// For any altered byte, reads give complete entries or an error, and never crash.
TEST_F(TuningCacheTest, DetectsAlteredFiles) {
  {
    tune::TuningCache cache = writer();
    for (int k = 0; k < 20; ++k) cache.store(some_kernel(concat("work ", k)));
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 4096U);
  std::size_t refused = 0;
  for (std::size_t place = 0; place < whole.size(); place += place < 200 ? 1 : 97) {
    std::string altered = whole;
    altered[place] = static_cast<char>(altered[place] ^ 0x5a);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << altered;
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
    try {
      const tune::TuningCache cache = reader();
      for (int k = 0; k < 20; ++k) {
        if (const auto found = cache.find({"a machine", "a generator", 2}, concat("work ", k))) {
          EXPECT_EQ(problem_of(*found), std::nullopt);
        }
      }
      cache.all();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Device);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, whole.size() / 2);
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  message([&] { reader().all(); });
}

TEST_F(TuningCacheTest, RefusesOtherVersions) {
  writer().store(some_kernel("one"));
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(63);  // the last byte of user_version in SQLite's header
  file.put(9);
  file.close();
  EXPECT_NE(message([&] { reader(); }).find("of another version of Tenon"), std::string::npos);
}

TEST_F(TuningCacheTest, JsonRoundTrip) {
  const std::vector<tune::TunedKernel> kernels = {some_kernel("one"),
                                                  some_kernel("t\two \xc3\xa4")};
  const std::string text = tune::to_json(kernels);
  EXPECT_EQ(tune::to_json(tune::tuned_kernels_from_json(text, "file")), text);
}

TEST_F(TuningCacheTest, RefusesWrongJsonWithItsPosition) {
  const std::string text = tune::to_json({some_kernel("one")});
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string altered = text;
    const std::size_t at = altered.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    altered.replace(at, from.size(), to);
    return message([&] { tune::tuned_kernels_from_json(altered, "file.json"); },
                   ErrorKind::InvalidModel);
  };
  EXPECT_EQ(refused("\"threads\": 2", "\"threads\": \"2\""),
            "this is no list of timed kernels\n  at        file.json, kernels/0/threads\n"
            "  expected  a whole number\n  got       \"2\"");
  EXPECT_NE(refused("\"seconds\": 0.25", "\"seconds\": -1").find("timings/0/seconds: not above 0"),
            std::string::npos);
  EXPECT_NE(refused("\"lo\": 5", "\"lo\": 6").find("ranges/1: does not follow the one before"),
            std::string::npos);
  EXPECT_NE(refused("\"candidate\": \"loops\"", "\"candidate\": 3").find("expected  a text"),
            std::string::npos);
  EXPECT_NE(refused("\"candidate\": \"loops\"", "\"candidate\": \"tiles 6x16\"")
                .find("each candidate once"),
            std::string::npos);
  EXPECT_NE(refused("\"flops\": 12.5", "\"flop\": 12.5").find("kernels/0/flops"),
            std::string::npos);
  EXPECT_NE(refused("\"version\": 1", "\"version\": 2").find("expected  version 1"),
            std::string::npos);
  EXPECT_NE(refused("{", "[").find("expected  JSON"), std::string::npos);
  EXPECT_NE(refused("\"kernels\": [", "\"kernels\": 3, \"x\": [").find("expected  a list"),
            std::string::npos);
  // Every truncation gives a message.
  for (std::size_t length = 0; length < text.size() - 2; length += 7) {
    message([&] { tune::tuned_kernels_from_json(text.substr(0, length), "file.json"); },
            ErrorKind::InvalidModel);
  }
}

}  // namespace
}  // namespace tenon::tuning_cache_test
