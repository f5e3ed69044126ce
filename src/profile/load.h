#pragma once

#include "profile/profile.h"

#include <string>

namespace tenon::profile {

/// Reads a profile from a file: output of `to_json`, or a MegEngine document. Throws Error for
/// other files.
Profile load_profile(const std::string& path);

}  // namespace tenon::profile
