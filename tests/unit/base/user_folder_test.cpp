#include "base/user_folder.h"

#include <gtest/gtest.h>

namespace tenon::user_folder_test {
namespace {

TEST(UserCacheFolder, FirstAbsolutePathWins) {
  EXPECT_EQ(user_cache_folder("/cache", "/home/a", "/home/b"), "/cache/tenon");
  EXPECT_EQ(user_cache_folder(nullptr, "/home/a", "/home/b"), "/home/a/.cache/tenon");
  EXPECT_EQ(user_cache_folder("relative", "/home/a", nullptr), "/home/a/.cache/tenon");
  EXPECT_EQ(user_cache_folder("", "", "/home/b"), "/home/b/.cache/tenon");
  EXPECT_EQ(user_cache_folder(nullptr, ".", "/home/b"), "/home/b/.cache/tenon");
  EXPECT_EQ(user_cache_folder(nullptr, nullptr, nullptr), std::nullopt);
  EXPECT_EQ(user_cache_folder(nullptr, "relative", ""), std::nullopt);
}

}  // namespace
}  // namespace tenon::user_folder_test
