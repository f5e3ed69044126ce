#pragma once

#include "nests/loop_nest.h"

#include <string_view>
#include <vector>

namespace tenon::nests {

/// Parses the text form of one nest, or of all nests in a text, which may contain comments. Every
/// loop gets its own id, also where consecutive loops shared one. Throws Error with line and
/// column; the nest is not verified (see verify.h).
LoopNest parse_nest(std::string_view text, std::string_view source_name = "text");
std::vector<LoopNest> parse_nests(std::string_view text, std::string_view source_name = "text");

}  // namespace tenon::nests
