#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::inline program {

/// Returns a non-cryptographic hash that detects accidental changes. It does not protect against
/// intent: the author of a program can also write its checksum.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Constants are checked per block on first use, by any thread.
inline constexpr std::size_t kChecksumBlock = std::size_t{1} << 18;
std::span<const std::byte> checksum_block(std::span<const std::byte> bytes, std::size_t block);
std::vector<std::uint64_t> block_checksums(std::span<const std::byte> bytes);

}  // namespace tenon::inline program
