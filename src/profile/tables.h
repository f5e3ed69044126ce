#pragma once

#include "base/page.h"
#include "profile/profile.h"

#include <string>

namespace tenon::profile {

/// Summary tables of a profile: totals, by operator, by operator and shapes, by kernel, by step
/// (the longest `top` of each), memory at its peak, and changes by passes.
Page describe_profile(const Profile& profile, std::size_t top = 20);

/// Differences between two profiles by decreasing time: totals, by operator, by step. Steps are
/// matched by value, then by order.
Page compare_profiles(const Profile& before, const Profile& after, std::size_t top = 20);

/// Converts a page to "csv", "md" or "json".
std::string page_as(const Page& page, const std::string& format);

}  // namespace tenon::profile
