#pragma once

#include "profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A page that shows a profile, or two beside each other, in one file that needs nothing else:
/// summary, timeline, memory, roofline, tables, graph, passes.
std::string html_report(const std::vector<Profile>& profiles);

/// The style sheet of that page, for others that are to look like it.
std::string_view report_style();

}  // namespace tenon
