#pragma once

#include "ir/graph.h"
#include "profile/profile.h"

#include <string>
#include <string_view>

namespace tenon {

/// Returns the last run as a MegEngine document; `graph` is the compiled graph after the passes.
/// Steps of one node become one operator with their total time.
std::string megengine_document(const Profile& profile, const Graph& graph);

/// Reads a MegEngine document as a profile: its operators in execution order, with its own counts
/// as flops and bytes. Throws Error for other text.
Profile profile_of_megengine(std::string_view text, std::string_view source);

}  // namespace tenon
