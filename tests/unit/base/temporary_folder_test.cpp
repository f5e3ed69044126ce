#include "base/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace tenon::temporary_folder_test {
namespace {

namespace fs = std::filesystem;

std::string purpose() { return "test" + std::to_string(getppid()); }

TEST(TemporaryFolder, IsPrivateAndRemovedAtTheEnd) {
  std::string path;
  {
    const TemporaryFolder folder(purpose()), other(purpose());
    EXPECT_NE(folder.file("x"), other.file("x"));
    path = folder.file("x");
    std::ofstream(path) << "x";
    struct stat status {};
    ASSERT_EQ(::stat(fs::path(path).parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
  }
  EXPECT_FALSE(fs::exists(fs::path(path).parent_path()));
}

TEST(TemporaryFolder, RemovesFoldersOfKilledProcesses) {
  const std::string name = purpose();
  int made[2];
  ASSERT_EQ(::pipe(made), 0);
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder folder(name);
    std::ofstream(folder.file("x")) << "x";
    const std::string path = folder.file("x");
    if (::write(made[1], path.data(), path.size()) < 0) _exit(1);
    for (;;) ::pause();
  }
  std::string path(4096, '\0');
  const ssize_t size = ::read(made[0], path.data(), path.size());
  ASSERT_GT(size, 0);
  path.resize(static_cast<std::size_t>(size));
  {
    const TemporaryFolder next(name);
    EXPECT_TRUE(fs::exists(path));  // the process that owns it is alive
  }
  ::kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const TemporaryFolder next(name);
  EXPECT_FALSE(fs::exists(fs::path(path).parent_path()));
  ::close(made[0]);
  ::close(made[1]);
}

}  // namespace
}  // namespace tenon::temporary_folder_test
