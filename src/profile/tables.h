#pragma once

#include "base/page.h"
#include "profile/profile.h"

#include <string>

namespace tenon {

/// What a profile amounts to: in total, by operator, by operator and shapes, by kernel, step by
/// step (the longest `top` of each), memory at its peak, and what passes changed.
Page describe_profile(const Profile& profile, std::size_t top = 20);

/// What changed from one profile to another, most seconds first: in total, by operator, step by
/// step. Steps are told apart by name; those of one name by their order.
Page compare_profiles(const Profile& before, const Profile& after, std::size_t top = 20);

/// A page for machines and other pages: "csv", "md" or "json".
std::string page_as(const Page& page, const std::string& format);

}  // namespace tenon
