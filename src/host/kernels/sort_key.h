#pragma once

#include "ir/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace tenon::inline host {

// Order of elements as in ElementOrder: by value, both zeros equal, NaN above all and equal to NaN.
// `Key` is an unsigned integer with the same order.

template <class T>
struct IntegerOrder {
  using Element = T;
  using Key = std::make_unsigned_t<T>;
  static Key key(T x) {
    if constexpr (std::is_unsigned_v<T>) return x;
    constexpr auto kSign = static_cast<Key>(Key{1} << (8 * sizeof(T) - 1));
    return static_cast<Key>(static_cast<Key>(x) ^ kSign);
  }
  static bool is_zero(T x) { return x == 0; }
  // True if an element may precede `limit` in descending (kLargest) or ascending order.
  template <bool kLargest>
  static bool may_precede(T x, T limit) {
    return kLargest ? x > limit : x < limit;
  }
  // Returns the successor of `x` in that order, if known.
  template <bool kLargest>
  static std::optional<T> next_after(T x) {
    if (x == (kLargest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()))
      return std::nullopt;
    return static_cast<T>(kLargest ? x - 1 : x + 1);
  }
};

template <class T, class Bits>
struct FloatOrder {
  using Element = T;
  using Key = Bits;
  static Key key(T x) {
    if (x != x) return std::numeric_limits<Key>::max();
    constexpr auto kSign = Key{1} << (8 * sizeof(T) - 1);
    const Key bits = x == 0 ? Key{0} : std::bit_cast<Key>(x);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  static bool is_zero(T x) { return x == 0; }
  // Also true for NaN; the keys decide.
  template <bool kLargest>
  static bool may_precede(T x, T limit) {
    return kLargest ? !(x <= limit) : !(x >= limit);
  }
  template <bool kLargest>
  static std::optional<T> next_after(T x) {
    if (!std::isfinite(x)) return std::nullopt;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return std::nextafter(x, kLargest ? -kInfinity : kInfinity);
  }
};

// f16 and bf16 as bits; `kInfinity` has all exponent bits set.
template <std::uint16_t kInfinity>
struct HalfOrder {
  using Element = std::uint16_t;
  using Key = std::uint16_t;
  static Key key(Element x) {
    const auto magnitude = static_cast<unsigned>(x) & 0x7fffu;
    const bool is_negative = (x & 0x8000u) != 0 && magnitude != 0;
    const unsigned ordered = is_negative ? 0x7fffu - magnitude + 1 : 0x8000u + magnitude;
    return static_cast<Key>(magnitude > kInfinity ? 0xffffu : ordered);
  }
  static bool is_zero(Element x) { return (x & 0x7fffu) == 0; }
  template <bool kLargest>
  static bool may_precede(Element x, Element limit) {
    return kLargest ? key(x) > key(limit) : key(x) < key(limit);
  }
  template <bool kLargest>
  static std::optional<Element> next_after(Element) {
    return std::nullopt;
  }
};

/// Calls `use` with the order of the element type and returns its result; false for unsupported
/// types.
template <class Use>
bool with_order(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::F64:
      return use(FloatOrder<double, std::uint64_t>{});
    case DType::F32:
      return use(FloatOrder<float, std::uint32_t>{});
    case DType::F16:
      return use(HalfOrder<0x7c00>{});
    case DType::BF16:
      return use(HalfOrder<0x7f80>{});
    case DType::I64:
      return use(IntegerOrder<std::int64_t>{});
    case DType::I32:
      return use(IntegerOrder<std::int32_t>{});
    case DType::I16:
      return use(IntegerOrder<std::int16_t>{});
    case DType::I8:
      return use(IntegerOrder<std::int8_t>{});
    case DType::U64:
      return use(IntegerOrder<std::uint64_t>{});
    case DType::U32:
      return use(IntegerOrder<std::uint32_t>{});
    case DType::U16:
      return use(IntegerOrder<std::uint16_t>{});
    case DType::U8:
    case DType::Bool:
      return use(IntegerOrder<std::uint8_t>{});
    default:
      return false;
  }
}

// A key with its original position, ordered by both. Keys of up to 32 bits share a word with the
// position.
template <class KeyType, bool kIsWide = (sizeof(KeyType) > 4)>
struct Keyed {
  std::uint64_t word;
  Keyed() = default;
  Keyed(KeyType key_bits, std::size_t at)
      : word(static_cast<std::uint64_t>(key_bits) << 32 | static_cast<std::uint32_t>(at)) {}
  KeyType key() const { return static_cast<KeyType>(word >> 32); }
  std::size_t position() const { return static_cast<std::uint32_t>(word); }
  bool operator<(const Keyed& other) const { return word < other.word; }
};
template <class KeyType>
struct Keyed<KeyType, true> {
  KeyType bits;
  std::uint64_t at;
  Keyed() = default;
  Keyed(KeyType key_bits, std::size_t position_at) : bits(key_bits), at(position_at) {}
  KeyType key() const { return bits; }
  std::size_t position() const { return at; }
  bool operator<(const Keyed& other) const {
    return bits != other.bits ? bits < other.bits : at < other.at;
  }
};
/// Largest position that fits in a word with its key.
inline constexpr std::int64_t kMaxKeyed = std::numeric_limits<std::uint32_t>::max();

}  // namespace tenon::inline host
