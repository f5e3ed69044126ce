#include "base/new_file.h"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace tenon {
namespace {

TEST(NewFile, AppearsOnlyWhenComplete) {
  const std::string path = ::testing::TempDir() + "new_file_test";
  std::filesystem::remove(path);
  {
    NewFile file(path);
    file.out() << "half";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  NewFile file(path);
  file.out() << "whole";
  file.finish();
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
  std::filesystem::remove(path);
}

TEST(NewFile, LeavesWhatIsNoPlainFileInItsPlace) {
  const std::string path = ::testing::TempDir() + "new_file_pipe";
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);  // nobody waits for the other
  {
    NewFile file(path);
    file.out() << "through";
    file.finish();
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  ::close(reader);
  ::unlink(path.c_str());
}

TEST(NewFile, SaysWhereItCannotWrite) {
  NewFile file("/no/such/folder/x");
  EXPECT_THROW(file.finish(), Error);
}

}  // namespace
}  // namespace tenon
