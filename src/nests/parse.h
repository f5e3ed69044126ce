#pragma once

#include "nests/loop_nest.h"

#include <string_view>
#include <vector>

namespace tenon::nests {

/// Reads the text form of one nest, or of all nests of a text, which may have comments. Every loop
/// gets a number of its own, also where loops that follow each other shared one. Throws Error with
/// the line and the column; what the text says is not verified (verify.h).
LoopNest parse_nest(std::string_view text, std::string_view source_name = "text");
std::vector<LoopNest> parse_nests(std::string_view text, std::string_view source_name = "text");

}  // namespace tenon::nests
