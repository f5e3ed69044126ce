#include "program/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tenon::checksum_test {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

TEST(Checksum, DetectsEveryAlteredBit) {
  for (const std::size_t count : {1, 63, 127, 128, 129, 700}) {
    std::vector<std::byte> bytes = some_bytes(count);
    const std::uint64_t whole = checksum(bytes);
    for (std::size_t bit = 0; bit < 8 * count; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_NE(checksum(bytes), whole) << "bit " << bit << " of " << count << " bytes";
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    EXPECT_EQ(checksum(bytes), whole);
  }
}

// Sums and products lose the highest bits of a word first, and a pair of them cancels.
TEST(Checksum, DetectsOneBitAlteredInTwoWords) {
  std::vector<std::byte> bytes = some_bytes(1024);
  const std::uint64_t whole = checksum(bytes);
  for (const std::size_t bit : {7, 31, 39, 63}) {
    for (std::size_t a = 0; a < 128; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto alter = [&](std::size_t word) {
          bytes[8 * word + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        };
        alter(a);
        alter(b);
        EXPECT_NE(checksum(bytes), whole) << "bit " << bit << " of words " << a << " and " << b;
        alter(a);
        alter(b);
      }
    }
  }
}

TEST(Checksum, DependsOnPositions) {
  const std::vector<std::byte> bytes = some_bytes(4096);
  for (const std::size_t size : {8, 16, 64, 128, 256, 2048}) {
    std::vector<std::byte> swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(size),
                     swapped.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(checksum(swapped), checksum(bytes)) << "neighbours of " << size << " bytes";
  }
  std::vector<std::byte> turned = bytes;
  std::rotate(turned.begin(), turned.begin() + 128, turned.end());
  EXPECT_NE(checksum(turned), checksum(bytes));
}

TEST(Checksum, DependsOnTheNumberOfZeros) {
  std::set<std::uint64_t> sums;
  const std::vector<std::byte> zeros(2000);
  for (std::size_t count = 0; count <= zeros.size(); ++count)
    sums.insert(checksum(std::span(zeros).first(count)));
  EXPECT_EQ(sums.size(), zeros.size() + 1);
}

// Files contain it: a different value would make them unreadable without a reason.
TEST(Checksum, ValueOfTheVersion) {
  EXPECT_EQ(checksum({}), 0xdb2cc8f27a6099f2U);
  EXPECT_EQ(checksum(some_bytes(1000)), 0x3cca43beced7f5f7U);
}

TEST(Checksum, BlocksCoverTheRemainder) {
  const std::vector<std::byte> bytes = some_bytes(2 * kChecksumBlock + 5);
  const std::vector<std::uint64_t> sums = block_checksums(bytes);
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[2], checksum(std::span(bytes).last(5)));
}

}  // namespace
}  // namespace tenon::checksum_test
