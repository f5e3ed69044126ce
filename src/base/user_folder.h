#pragma once

#include <optional>
#include <string>

namespace tenon::inline base {

/// Returns the user's cache folder of this project: `tenon` in $XDG_CACHE_HOME, or in .cache of
/// $HOME, or in .cache of the home folder that the system records for the user; nullopt without
/// any.
std::optional<std::string> user_cache_folder();
/// The same from the given values; null, empty and relative paths do not count.
std::optional<std::string> user_cache_folder(const char* cache_home, const char* home,
                                             const char* home_of_user);

}  // namespace tenon::inline base
