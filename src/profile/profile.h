#pragma once

#include "program/run_profile.h"

#include <string>
#include <string_view>

namespace tenon::profile {

/// Serializes to JSON that `parse_profile` reads back unchanged.
std::string to_json(const Profile& profile);
/// Throws Error, naming the position, for invalid text or dangling indices.
Profile parse_profile(std::string_view text, std::string_view source);
/// True if the start of a file looks like a profile.
bool is_profile(std::string_view head);

}  // namespace tenon::profile
