#pragma once

#include "profile/profile.h"

#include <string>

namespace tenon::profile {

/// Exports the last run as a trace for Chrome (`chrome://tracing`) and Perfetto: a track per thread
/// and stream, a counter of live arena bytes, and flow arrows from producers to consumers.
std::string chrome_trace(const Profile& profile);

/// Exports the step graph for Graphviz; slower steps are redder.
std::string dot_graph(const Profile& profile);
/// Renders the step graph as a self-contained SVG with details on hover.
std::string svg_graph(const Profile& profile);

}  // namespace tenon::profile
