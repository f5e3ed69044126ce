#include "base/temporary_folder.h"
#include "codegen/compile.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/object_cache.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tenon::object_cache_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> code_of(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

class ObjectCacheTest : public ::testing::Test {
 protected:
  ObjectCacheTest() : owner_("objects"), folder_(owner_.file("kernels")) {
    fs::create_directories(folder_);
  }

  TemporaryFolder owner_;
  fs::path folder_;
};

TEST_F(ObjectCacheTest, FindsStoredCodeByItsWholeKey) {
  const codegen::ObjectCache cache(folder_, 1 << 20);
  cache.store("kernel a", code_of(100, 1));
  cache.store("kernel b", code_of(50, 2));
  EXPECT_EQ(cache.find("kernel a"), code_of(100, 1));
  EXPECT_EQ(cache.find("kernel b"), code_of(50, 2));
  EXPECT_EQ(cache.find("kernel"), std::nullopt);
}

TEST_F(ObjectCacheTest, DamagedEntriesCountAsMissing) {
  const codegen::ObjectCache cache(folder_, 1 << 20);
  cache.store("kernel", code_of(100, 1));
  const fs::path file = files_in(folder_).at(0);
  const auto size = static_cast<std::int64_t>(fs::file_size(file));
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{8}, size - 1}) {
    cache.store("kernel", code_of(100, 1));
    {
      std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(at);
      damaged.put('\x7f');
    }
    EXPECT_EQ(cache.find("kernel"), std::nullopt) << "byte " << at;
  }
  fs::resize_file(file, 20);
  EXPECT_EQ(cache.find("kernel"), std::nullopt);
}

TEST_F(ObjectCacheTest, EvictsTheLeastRecentlyUsed) {
  const codegen::ObjectCache cache(folder_, 10'000);
  cache.store("first", code_of(2'000, 1));
  fs::last_write_time(files_in(folder_).at(0),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (int k = 0; k < 4; ++k) cache.store(std::to_string(k), code_of(2'000, k));
  EXPECT_EQ(cache.find("first"), std::nullopt);
  EXPECT_EQ(cache.find("3"), code_of(2'000, 3));
}

TEST_F(ObjectCacheTest, IgnoresFoldersThatOthersMayWriteTo) {
  const char* was = std::getenv("TENON_KERNEL_CACHE");
  const std::string before = was == nullptr ? "" : was;
  setenv("TENON_KERNEL_CACHE", folder_.c_str(), 1);
  EXPECT_NE(codegen::user_object_cache(), nullptr);
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(codegen::user_object_cache(), nullptr);
  setenv("TENON_KERNEL_CACHE", "off", 1);
  EXPECT_EQ(codegen::user_object_cache(), nullptr);
  if (was == nullptr) {
    unsetenv("TENON_KERNEL_CACHE");
  } else {
    setenv("TENON_KERNEL_CACHE", before.c_str(), 1);
  }
}

TEST_F(ObjectCacheTest, CachedProgramsAreByteIdentical) {
  const Graph graph = parse_graph(R"(graph (x: f32[4, 16]) {
  w = constant f32[16, 24] normal(seed = 1, mean = 0.0, deviation = 1.0)
  p = matmul(x, w)
  y = relu(p)
  return y
}
)",
                                  all_ops());
  codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
  const auto cache = std::make_shared<const codegen::ObjectCache>(folder_, 1 << 20);
  options.target = codegen::cpu::cpu_target("x86-64-v3");
  const std::vector<std::byte> plain = codegen::compile(graph, options).program.code;
  options.target = codegen::cpu::cpu_target("x86-64-v3", cache);
  EXPECT_EQ(codegen::compile(graph, options).program.code, plain);
  EXPECT_EQ(files_in(folder_).size(), 1U);
  EXPECT_EQ(codegen::compile(graph, options).program.code, plain);
  EXPECT_EQ(files_in(folder_).size(), 1U);
}

}  // namespace
}  // namespace tenon::object_cache_test
