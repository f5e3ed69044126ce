#pragma once

#include "profile/profile.h"

#include <string>

namespace tenon {

/// A profile from a file: what `to_json` wrote, or a document of MegEngine's. Throws Error for any
/// other.
Profile load_profile(const std::string& path);

}  // namespace tenon
