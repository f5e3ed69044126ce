#include "base/user_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace tenon::inline base {

std::optional<std::string> user_cache_folder(const char* cache_home, const char* home,
                                             const char* home_of_user) {
  // A relative path would give a different cache per working directory; the XDG specification says
  // to ignore it.
  const auto is_given = [](const char* path) { return path != nullptr && *path == '/'; };
  std::filesystem::path folder;
  if (is_given(cache_home)) {
    folder = cache_home;
  } else if (is_given(home)) {
    folder = std::filesystem::path(home) / ".cache";
  } else if (is_given(home_of_user)) {
    folder = std::filesystem::path(home_of_user) / ".cache";
  } else {
    return std::nullopt;
  }
  return (folder / "tenon").string();
}

std::optional<std::string> user_cache_folder() {
  passwd user{};
  passwd* found = nullptr;
  std::array<char, 16384> text{};
  getpwuid_r(getuid(), &user, text.data(), text.size(), &found);
  return user_cache_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"),
                           found == nullptr ? nullptr : found->pw_dir);
}

}  // namespace tenon::inline base
