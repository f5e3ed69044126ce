#pragma once

#include <string_view>

namespace tenon::cli {

/// Returns a complete example call of the subcommand for its help; empty for an unknown name.
std::string_view example_of(std::string_view subcommand);

}  // namespace tenon::cli
