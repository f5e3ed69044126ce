#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::memory {

// Sets of values: bits in words.
inline constexpr std::size_t kWordBits = 64;
inline bool has(const std::uint64_t* set, std::uint32_t value) {
  return (set[value / kWordBits] >> value % kWordBits & 1) != 0;
}

inline void put(std::uint64_t* set, std::uint32_t value) {
  set[value / kWordBits] |= std::uint64_t{1} << value % kWordBits;
}

inline void take(std::uint64_t* set, std::uint32_t value) {
  set[value / kWordBits] &= ~(std::uint64_t{1} << value % kWordBits);
}

struct SetDifference {
  bool is_empty = true, is_touched = false;
};

// Compares two sets, and their difference with a third one.
inline SetDifference difference(const std::uint64_t* one, const std::uint64_t* other,
                                const std::uint64_t* touched, std::size_t word_count) {
  std::uint64_t all = 0, common = 0;
  for (std::size_t k = 0; k < word_count; ++k) {
    all |= one[k] ^ other[k];
    common |= (one[k] ^ other[k]) & touched[k];
  }
  return {all == 0, common != 0};
}

}  // namespace tenon::memory
