#pragma once

#include "ir/graph.h"
#include "profile/profile.h"

#include <string>
#include <string_view>

namespace tenon {

/// The document that MegEngine would have written of the last run: `graph` is what was compiled,
/// behind the passes. Steps of one node are one operator there, which takes what they took
/// together.
std::string megengine_document(const Profile& profile, const Graph& graph);

/// A document of MegEngine's as a profile: its operators in the order they ran, with its own counts
/// as flops and bytes. Throws Error for text that is none.
Profile profile_of_megengine(std::string_view text, std::string_view source);

}  // namespace tenon
