#pragma once

#include "profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::profile {

/// Renders one profile, or two side by side, as a self-contained HTML page: summary, timeline,
/// memory, roofline, tables, graph, passes.
std::string html_report(const std::vector<Profile>& profiles);

/// The style sheet of that page, for pages in the same style.
std::string_view report_style();

}  // namespace tenon::profile
