#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::testing {

/// Seeded random numbers that are equal on every machine (splitmix64), unlike the distributions of
/// <random>.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  /// Returns 0 to `count` - 1.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(next() % (static_cast<std::uint64_t>(hi - lo) + 1));
  }
  /// Returns true with that probability.
  bool chance(unsigned percent) { return next() % 100 < percent; }
  /// Returns a number in [0, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& among) {
    return among[below(among.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenon::testing
