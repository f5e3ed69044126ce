#include "program/checksum.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>

namespace tenon::inline program {
namespace {

constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;

// A bijection in each argument, so a single altered word always changes the hash.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kFactor;
  return hash ^ (hash >> 29);
}

// Multiply-with-carry in two lanes of one word each. With t = lane ^ word, the new lane is low(t) *
// kCarrying + high(t), which equals t / 2^32 modulo kCarrying * 2^32 - 1. That modulus is a prime
// just below 2^64, so two words collide in a lane only if they differ by exactly this number. It
// needs one 32-bit multiplication, which every x86-64 processor vectorizes.
constexpr std::uint32_t kCarrying = 0xffffff4e;

__m128i mixed(__m128i lanes, __m128i words) {
  const __m128i t = _mm_xor_si128(lanes, words);
  return _mm_add_epi64(_mm_mul_epu32(t, _mm_set1_epi64x(kCarrying)), _mm_srli_epi64(t, 32));
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  // Independent lanes hide latency: checking the constants runs at memory bandwidth.
  constexpr std::size_t pair_count = 8;
  __m128i lanes[pair_count];
  for (std::size_t k = 0; k < pair_count; ++k) {
    lanes[k] =
        _mm_set_epi64x(static_cast<std::int64_t>(2 * k + 2), static_cast<std::int64_t>(2 * k + 1));
  }
  const std::byte* data = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(lanes); left -= sizeof(lanes), data += sizeof(lanes)) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < pair_count; ++k) {
      lanes[k] = mixed(lanes[k], _mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + k));
    }
  }
  std::uint64_t hash = mixed(kFactor, bytes.size());
  for (const __m128i pair : lanes) {
    std::array<std::uint64_t, 2> words;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words.data()), pair);
    for (const std::uint64_t word : words) hash = mixed(hash, word);
  }
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

}  // namespace tenon::inline program
