#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

/// The words in which two sets differ. Sets at neighboring borders mostly differ in the same few.
class SetDifference {
 public:
  void find(const std::uint64_t* one, const std::uint64_t* other, std::size_t word_count) {
    parts_.clear();
    for (std::size_t k = 0; k < word_count; ++k) {
      if (one[k] != other[k]) parts_.emplace_back(k, one[k] ^ other[k]);
    }
  }
  void clear() { parts_.clear(); }
  bool is_empty() const { return parts_.empty(); }
  /// Returns whether a value in which they differ is in `set`.
  bool touches(const std::uint64_t* set) const {
    std::uint64_t common = 0;
    for (const auto& [word, bits] : parts_) common |= set[word] & bits;
    return common != 0;
  }
  /// Makes `set` differ from `kept` likewise; it equals `kept` in the other words.
  void apply(const std::uint64_t* kept, std::uint64_t* set) const {
    for (const auto& [word, bits] : parts_) set[word] = kept[word] ^ bits;
  }

 private:
  std::vector<std::pair<std::size_t, std::uint64_t>> parts_;
};

}  // namespace tenon::memory
