#include "distributed/visible_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace tenon::visible_memory_test {
namespace {

constexpr char kText[] = "what a rank shows";

TEST(VisibleMemory, MapsMemoryOfAnotherProcess) {
  distributed::VisibleMemory mine;
  const std::shared_ptr<std::byte> memory = mine.allocate(100'000);
  ASSERT_NE(memory, nullptr);
  std::byte* at = memory.get() + 70'000;
  const MemoryWindow window = mine.window_of({at, sizeof kText});
  EXPECT_NE(window.region, 0U);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {  // mapped before the first write: later writes are visible as well
    distributed::VisibleMemory theirs;
    const std::span<const std::byte> seen = theirs.view(parent, window);
    for (int tries = 0; tries < 2000 && seen.size() == sizeof kText; ++tries) {
      if (std::memcmp(seen.data(), kText, sizeof kText) == 0) _exit(0);
      usleep(5000);
    }
    _exit(1);
  }
  std::memcpy(at, kText, sizeof kText);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(VisibleMemory, MapsOnlyItsOwnRegions) {
  distributed::VisibleMemory mine;
  const std::shared_ptr<std::byte> memory = mine.allocate(8192);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(mine.window_of({memory.get() + 8000, 193}).region, 0U) << "over its end";
  const std::byte other = {};
  EXPECT_EQ(mine.window_of({&other, 1}).region, 0U);
  distributed::VisibleMemory theirs;
  const MemoryWindow window = mine.window_of({memory.get(), 8192});
  EXPECT_EQ(theirs.view(getpid(), window).size(), 8192U);
  EXPECT_TRUE(theirs.view(getpid(), {window.region, window.file, 4096, 8192}).empty());
  EXPECT_TRUE(theirs.view(getpid(), {window.region + 9, 1'000'000, 0, 1}).empty())
      << "no such file";
}

// A freed region and its successor at the same address have different numbers.
TEST(VisibleMemory, RenumbersRegions) {
  distributed::VisibleMemory mine, theirs;
  std::shared_ptr<std::byte> memory = mine.allocate(4096);
  const MemoryWindow first = mine.window_of({memory.get(), 4});
  EXPECT_EQ(std::to_integer<int>(theirs.view(getpid(), first)[0]), 0);
  memory = mine.allocate(4096);
  memory.get()[0] = std::byte{7};
  const MemoryWindow second = mine.window_of({memory.get(), 4});
  EXPECT_NE(first.region, second.region);
  EXPECT_EQ(std::to_integer<int>(theirs.view(getpid(), second)[0]), 7);
}

}  // namespace
}  // namespace tenon::visible_memory_test
