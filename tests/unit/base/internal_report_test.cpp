#include "base/internal_report.h"
#include "base/temporary_folder.h"
#include "base/version.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tenon::internal_report_test {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

InternalError broken() {
  InternalError error("a == b", "nests are sound: x is accessed at 8\nkernel k\n}", "nest.cpp", 7);
  error.locate("node 'y' (conv)");
  error.locate("graph 'g'");  // Less specific.
  return error;
}

constexpr const char* kLine =
    "internal error: nests are sound: x is accessed at 8 (a == b at nest.cpp:7), at node 'y' "
    "(conv)";

TEST(InternalReport, LineNamesNodeAndFileOfDetails) {
  const TemporaryFolder home("internal-report");
  const char* given = std::getenv("XDG_CACHE_HOME");
  const std::string before = given == nullptr ? "" : given;
  setenv("XDG_CACHE_HOME", home.file("cache").c_str(), 1);
  const std::string line = report(broken()), again = report(broken());
  // A cache folder that cannot be created.
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  const std::string elsewhere = report(broken());
  if (given == nullptr) {
    unsetenv("XDG_CACHE_HOME");
  } else {
    setenv("XDG_CACHE_HOME", before.c_str(), 1);
  }

  const std::string beginning = concat(kLine, "; please report this with ");
  ASSERT_EQ(line.substr(0, beginning.size()), beginning);
  EXPECT_EQ(line, again);
  const std::string file = line.substr(beginning.size());
  EXPECT_TRUE(file.starts_with(home.file("cache/tenon/internal_errors/"))) << file;
  EXPECT_EQ(content_of(file), concat("tenon ", kVersion, "\n", kLine, "\nkernel k\n}\n"));

  const std::string other = elsewhere.substr(beginning.size());
  EXPECT_EQ(content_of(other), content_of(file)) << other;
  std::filesystem::remove(other);
}

}  // namespace
}  // namespace tenon::internal_report_test
