#pragma once

#include "profile/profile.h"

#include <string>

namespace tenon {

/// The last run as a trace that Chrome (`chrome://tracing`) and Perfetto open: a lane for each
/// thread and stream, a track of the bytes alive in the arena, arrows from who makes a value to who
/// reads it.
std::string chrome_trace(const Profile& profile);

/// The steps and what flows between them for Graphviz, the more time a step takes the redder.
std::string dot_graph(const Profile& profile);
/// The same drawn: a picture in one file, with what is known of a step where the pointer rests.
std::string svg_graph(const Profile& profile);

}  // namespace tenon
