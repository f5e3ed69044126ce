#include "program/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tenon {
namespace {

constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;

// One to one in both arguments, so that a single altered word always shows.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kFactor;
  return hash ^ (hash >> 29);
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  // Lanes that do not wait for each other: the constants are checked as fast as memory gives them.
  std::array<std::uint64_t, 8> lanes = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::byte* data = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(lanes); left -= sizeof(lanes), data += sizeof(lanes)) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), data, sizeof(words));
    for (std::size_t k = 0; k < lanes.size(); ++k) lanes[k] = mixed(lanes[k], words[k]);
  }
  std::uint64_t hash = mixed(kFactor, bytes.size());
  for (const std::uint64_t lane : lanes) hash = mixed(hash, lane);
  for (; left > 0; --left, ++data) hash = mixed(hash, static_cast<std::uint64_t>(*data));
  return hash;
}

std::span<const std::byte> checksum_block(std::span<const std::byte> bytes, std::size_t block) {
  const std::size_t begin = block * kChecksumBlock;
  return bytes.subspan(begin, std::min(kChecksumBlock, bytes.size() - begin));
}

std::vector<std::uint64_t> block_checksums(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> sums;
  for (std::size_t block = 0; block * kChecksumBlock < bytes.size(); ++block) {
    sums.push_back(checksum(checksum_block(bytes, block)));
  }
  return sums;
}

}  // namespace tenon
