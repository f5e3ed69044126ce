#include "frontends/onnx/sha1.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tenon::frontends::onnx {
namespace {

using Digest = std::array<std::uint32_t, 5>;
constexpr std::size_t kBlockBytes = 64;

std::uint32_t big_endian_word(const std::byte* at) {
  std::uint32_t word = 0;
  for (int k = 0; k < 4; ++k) word = word << 8 | std::to_integer<std::uint32_t>(at[k]);
  return word;
}

// One block of FIPS 180-4, section 6.1.2.
void mix_block(Digest& digest, const std::byte* block) {
  std::array<std::uint32_t, 80> words;
  for (std::size_t k = 0; k < 16; ++k) words[k] = big_endian_word(block + 4 * k);
  for (std::size_t k = 16; k < 80; ++k) {
    words[k] = std::rotl(words[k - 3] ^ words[k - 8] ^ words[k - 14] ^ words[k - 16], 1);
  }
  auto [a, b, c, d, e] = digest;
  for (std::size_t k = 0; k < 80; ++k) {
    std::uint32_t mixed, round;
    if (k < 20) {
      mixed = (b & c) | (~b & d), round = 0x5a827999;
    } else if (k < 40) {
      mixed = b ^ c ^ d, round = 0x6ed9eba1;
    } else if (k < 60) {
      mixed = (b & c) | (b & d) | (c & d), round = 0x8f1bbcdc;
    } else {
      mixed = b ^ c ^ d, round = 0xca62c1d6;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + round + words[k];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  const Digest change = {a, b, c, d, e};
  for (std::size_t k = 0; k < digest.size(); ++k) digest[k] += change[k];
}

}  // namespace

std::string sha1_hex(std::span<const std::byte> bytes) {
  Digest digest = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::size_t done = 0;
  for (; bytes.size() - done >= kBlockBytes; done += kBlockBytes) {
    mix_block(digest, bytes.data() + done);
  }
  // The remainder, a one bit, zeros, and the length in bits fill one or two more blocks.
  std::array<std::byte, 2 * kBlockBytes> tail{};
  const std::size_t rest = bytes.size() - done;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + done, rest);
  tail[rest] = std::byte{0x80};
  const std::size_t tail_bytes = rest + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const std::uint64_t bit_count = std::uint64_t{bytes.size()} * 8;
  for (std::size_t k = 0; k < 8; ++k) {
    tail[tail_bytes - 1 - k] = static_cast<std::byte>(bit_count >> (8 * k));
  }
  for (std::size_t at = 0; at < tail_bytes; at += kBlockBytes) mix_block(digest, tail.data() + at);

  std::string hex;
  for (std::uint32_t word : digest) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  }
  return hex;
}

}  // namespace tenon::frontends::onnx
