#pragma once

#include "host/kernels/sort_key.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace tenon::inline host {

// Sorting and selection, not inlined so that each key type is compiled once.
template <class Item>
[[gnu::noinline]] void sort_items(Item* begin, Item* end) {
  std::sort(begin, end);
}
template <class Item>
[[gnu::noinline]] void select_items(Item* begin, Item* nth, Item* end) {
  std::nth_element(begin, nth, end);
}

// Digits of 11 bits, or of 8 bits for narrow keys: the count tables fit in L1.
template <class Key>
struct Digits {
  static constexpr unsigned kBits = sizeof(Key) <= 2 ? 8 : 11;
  static constexpr unsigned kCount = (8 * sizeof(Key) + kBits - 1) / kBits;
  static constexpr std::size_t kValues = std::size_t{1} << kBits;
  static std::size_t of(Key key, unsigned digit) {
    return static_cast<std::size_t>(key >> (digit * kBits)) & (kValues - 1);
  }
};

/// LSD radix sort by key, then position. `items` are ordered by position; `spare` has the same
/// size. Returns the one of the two that holds the result.
template <class Key>
[[gnu::noinline]] std::span<Keyed<Key>> radix_sort(std::span<Keyed<Key>> items,
                                                   std::span<Keyed<Key>> spare) {
  constexpr std::size_t kFew = 384;  // below, the tables cost more than comparisons
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
    // all keys share this digit
    if (places[D::of(items.front().key(), digit)] == items.size()) continue;
    std::uint32_t begin = 0;
    for (std::uint32_t& place : places) begin += std::exchange(place, begin);
    for (const Keyed<Key>& item : items) spare[places[D::of(item.key(), digit)]++] = item;
    std::swap(items, spare);
  }
  return items;
}

/// Radix select: moves the `count` smallest `items` to the front in their original order.
template <class Key>
[[gnu::noinline]] void radix_select(std::span<Keyed<Key>> items, std::span<Keyed<Key>> spare,
                                    std::size_t count) {
  using D = Digits<Key>;
  // Determines the key of the last selected item digit by digit; `left` counts the selected items
  // among those with the same digits so far.
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
      spare[kept] = item;  // in place if `spare` is `alike`: writes never pass reads
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

}  // namespace tenon::inline host
