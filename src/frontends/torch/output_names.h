#pragma once

#include "frontends/json.h"

#include <string>
#include <vector>

namespace tenon::frontends::torch {

/// Names the outputs of an exported module by their places in its result: "logits",
/// "past_key_values_0_1". Returns an empty list for a single tensor, or if the description of the
/// result does not have `count` leaves.
std::vector<std::string> output_names(const JsonReader& graph_module, std::size_t count);

}  // namespace tenon::frontends::torch
