#pragma once

#include "host/kernels/sort_key.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace tenon {

// Items in order, and the first of them up to `nth`: not inlined, so that they are compiled once
// for a kind of key.
template <class Item>
[[gnu::noinline]] void sort_items(Item* begin, Item* end) {
  std::sort(begin, end);
}
template <class Item>
[[gnu::noinline]] void select_items(Item* begin, Item* nth, Item* end) {
  std::nth_element(begin, nth, end);
}

// Keys are cut into digits of 11 bits, or of 8 where that is as few: tables of counts that stay in
// the first cache.
template <class Key>
struct Digits {
  static constexpr unsigned kBits = sizeof(Key) <= 2 ? 8 : 11;
  static constexpr unsigned kCount = (8 * sizeof(Key) + kBits - 1) / kBits;
  static constexpr std::size_t kValues = std::size_t{1} << kBits;
  static std::size_t of(Key key, unsigned digit) {
    return static_cast<std::size_t>(key >> (digit * kBits)) & (kValues - 1);
  }
};

/// Sorts by key, then position. `items` come in the order of their positions; `spare` has as much
/// room. Gives the one of the two that holds the result.
template <class Key>
[[gnu::noinline]] std::span<Keyed<Key>> radix_sort(std::span<Keyed<Key>> items,
                                                   std::span<Keyed<Key>> spare) {
  constexpr std::size_t kFew = 384;  // where the tables cost more than comparing
  using D = Digits<Key>;
  if (items.size() < kFew) {
    sort_items(items.data(), items.data() + items.size());
    return items;
  }
  std::array<std::array<std::uint32_t, D::kValues>, D::kCount> counts{};
  for (const Keyed<Key>& item : items) {
    for (unsigned digit = 0; digit < D::kCount; ++digit) ++counts[digit][D::of(item.key(), digit)];
  }
  spare = spare.first(items.size());
  for (unsigned digit = 0; digit < D::kCount; ++digit) {
    auto& places = counts[digit];
    if (places[D::of(items.front().key(), digit)] == items.size()) continue;  // all alike
    std::uint32_t begin = 0;
    for (std::uint32_t& place : places) begin += std::exchange(place, begin);
    for (const Keyed<Key>& item : items) spare[places[D::of(item.key(), digit)]++] = item;
    std::swap(items, spare);
  }
  return items;
}

/// Moves the `count` least of `items`, which come in the order of their positions, to the front,
/// still in that order.
template <class Key>
[[gnu::noinline]] void radix_select(std::span<Keyed<Key>> items, std::span<Keyed<Key>> spare,
                                    std::size_t count) {
  using D = Digits<Key>;
  // The key of the last one that is wanted, digit by digit; `left`: how many among those that share
  // its digits so far.
  std::span<const Keyed<Key>> alike = items;
  std::size_t left = count;
  Key last = 0;
  for (unsigned digit = D::kCount; digit-- > 0;) {
    std::array<std::uint32_t, D::kValues> counts{};
    for (const Keyed<Key>& item : alike) ++counts[D::of(item.key(), digit)];
    std::size_t value = 0;
    for (; counts[value] < left; ++value) left -= counts[value];
    last = static_cast<Key>(last | static_cast<Key>(value) << (digit * D::kBits));
    if (counts[value] == alike.size()) continue;
    std::size_t kept = 0;
    for (const Keyed<Key>& item : alike) {
      spare[kept] = item;  // `spare` may be `alike` itself: never ahead of what is read
      kept += D::of(item.key(), digit) == value ? 1 : 0;
    }
    alike = spare.first(kept);
  }
  std::size_t kept = 0;
  for (const Keyed<Key>& item : items) {
    const bool is_last = item.key() == last;
    if (item.key() < last || (is_last && left > 0)) {
      left -= is_last ? 1 : 0;
      items[kept++] = item;
    }
  }
}

}  // namespace tenon
