#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// A number that almost surely differs where the bytes do, by accident and not by intent: whoever
/// can write a program can write its checksum too.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Constants are checked in blocks: each when it is first read, by any thread.
inline constexpr std::size_t kChecksumBlock = std::size_t{1} << 18;
std::span<const std::byte> checksum_block(std::span<const std::byte> bytes, std::size_t block);
std::vector<std::uint64_t> block_checksums(std::span<const std::byte> bytes);

}  // namespace tenon
