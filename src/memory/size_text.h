#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::memory {

/// Parses "4GiB", "500 MB", "1048576" or "1.5G" (powers of 1000; Ki, Mi, Gi, Ti are powers of
/// 1024). No value for invalid sizes: negative, an unknown unit, more than 64 PiB.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace tenon::memory
