#pragma once

#include <string_view>

namespace tenon::cli {

/// A call of the subcommand that does something as it stands, for its help; empty for an unknown
/// name.
std::string_view example_of(std::string_view subcommand);

}  // namespace tenon::cli
