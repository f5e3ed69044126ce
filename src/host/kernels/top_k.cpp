#include "host/kernels/list.h"
#include "host/kernels/parallel.h"
#include "host/kernels/radix_sort.h"
#include "host/kernels/vector_level.h"

#include <array>
#include <bit>
#include <cstring>

namespace tenon::inline host {
namespace {

// Rows longer than this are split over several threads.
constexpr std::int64_t kPart = 65536;
// If k is at most this fraction of the row, a comparison with the current k-th element rejects
// nearly all elements; otherwise every element gets a key.
constexpr std::int64_t kFewOf = 16;
// Up to this k the best elements are kept sorted; beyond it, a buffer is compacted periodically.
constexpr std::int64_t kInOrder = 128;

// For each element of a block: 1 if it may precede the limit, else 0.
constexpr std::int64_t kBlock = 64;
using Flags = std::array<unsigned char, kBlock>;

// Returns the first block from `begin` on with such elements, or the remainder after the last whole
// block.
template <class Order, bool kLargest>
TENON_INLINE std::int64_t next_block(const typename Order::Element* row, std::int64_t begin,
                                     std::int64_t end, typename Order::Element limit,
                                     Flags& flags) {
  for (; begin + kBlock <= end; begin += kBlock) {
    const typename Order::Element* block = row + begin;
    unsigned found = 0;
    for (std::int64_t k = 0; k < kBlock; ++k)
      found |= Order::template may_precede<kLargest>(block[k], limit) ? 1u : 0u;
    if (found == 0) continue;
    for (std::int64_t k = 0; k < kBlock; ++k)
      flags[static_cast<std::size_t>(k)] =
          Order::template may_precede<kLargest>(block[k], limit) ? 1 : 0;
    break;
  }
  return begin;
}
template <class Order, bool kLargest>
TENON_AVX2 std::int64_t next_block_avx2(const typename Order::Element* row, std::int64_t begin,
                                        std::int64_t end, typename Order::Element limit,
                                        Flags& flags) {
  return next_block<Order, kLargest>(row, begin, end, limit, flags);
}
template <class Order, bool kLargest>
TENON_AVX512 std::int64_t next_block_avx512(const typename Order::Element* row, std::int64_t begin,
                                            std::int64_t end, typename Order::Element limit,
                                            Flags& flags) {
  return next_block<Order, kLargest>(row, begin, end, limit, flags);
}
template <class Order, bool kLargest>
std::int64_t next_block_plain(const typename Order::Element* row, std::int64_t begin,
                              std::int64_t end, typename Order::Element limit, Flags& flags) {
  return next_block<Order, kLargest>(row, begin, end, limit, flags);
}

// Finds the maximum (or minimum) of each of `group_count` strided groups of a row.
template <class Order, bool kLargest>
TENON_INLINE void find_good(const typename Order::Element* row, std::int64_t extent,
                            std::int64_t group_count, typename Order::Element* good) {
  std::copy_n(row, group_count, good);
  for (std::int64_t at = group_count; at + group_count <= extent; at += group_count) {
    for (std::int64_t k = 0; k < group_count; ++k)
      good[k] = Order::template may_precede<kLargest>(row[at + k], good[k]) ? row[at + k] : good[k];
  }
}
template <class Order, bool kLargest>
TENON_AVX2 void find_good_avx2(const typename Order::Element* row, std::int64_t extent,
                               std::int64_t group_count, typename Order::Element* good) {
  find_good<Order, kLargest>(row, extent, group_count, good);
}
template <class Order, bool kLargest>
TENON_AVX512 void find_good_avx512(const typename Order::Element* row, std::int64_t extent,
                                   std::int64_t group_count, typename Order::Element* good) {
  find_good<Order, kLargest>(row, extent, group_count, good);
}
template <class Order, bool kLargest>
void find_good_plain(const typename Order::Element* row, std::int64_t extent,
                     std::int64_t group_count, typename Order::Element* good) {
  find_good<Order, kLargest>(row, extent, group_count, good);
}

// The functions that depend on the direction, compiled per vector level. All other code is shared.
template <class Order>
struct Direction {
  using Element = typename Order::Element;
  typename Order::Key flip;  // XOR mask of keys, so that the smallest key is the best
  std::int64_t (*next_block)(const Element*, std::int64_t, std::int64_t, Element, Flags&);
  void (*find_good)(const Element*, std::int64_t, std::int64_t, Element*);
  std::optional<Element> (*next_after)(Element);
};
template <class Order, bool kLargest>
Direction<Order> direction() {
  return {static_cast<typename Order::Key>(kLargest ? ~typename Order::Key{0} : 0),
          for_this_processor(next_block_avx512<Order, kLargest>, next_block_avx2<Order, kLargest>,
                             next_block_plain<Order, kLargest>),
          for_this_processor(find_good_avx512<Order, kLargest>, find_good_avx2<Order, kLargest>,
                             find_good_plain<Order, kLargest>),
          Order::template next_after<kLargest>};
}

// Selects the best elements of rows, best first: by key, then by position.
template <class Order>
class Best {
 public:
  using Element = typename Order::Element;
  using Key = typename Order::Key;
  using Item = Keyed<Key>;

  // For rows of `extent` elements and k >= 1. `memory` has space for `item_count` items.
  Best(const Direction<Order>& direction, std::int64_t extent, std::int64_t k, Item* memory)
      : direction_(direction),
        k_(k),
        takes_few_(takes_few(extent, k)),
        items_(memory),
        spare_(memory + extent) {}
  static std::int64_t item_count(std::int64_t extent, std::int64_t k) {
    return takes_few(extent, k) ? 2 * k : 2 * extent;
  }
  static bool takes_few(std::int64_t extent, std::int64_t k) { return k <= extent / kFewOf; }

  // Returns the best min(k, end - begin) items of a range.
  std::span<const Item> find(const Element* row, std::int64_t begin, std::int64_t end) {
    if (!takes_few_) return sorted(row, begin, end);
    if (k_ <= kInOrder) return held_in_order(row, begin, end);
    return cut_back(row, begin, end);
  }

 private:
  Item item_at(const Element* row, std::int64_t at) const {
    return Item(static_cast<Key>(Order::key(row[at]) ^ direction_.flip),
                static_cast<std::size_t>(at));
  }

  // Calls `offer` with the elements that may precede the current k-th element; `offer` returns the
  // new k-th element.
  template <class Offer>
  void for_each_better(const Element* row, std::int64_t begin, std::int64_t end, Element limit,
                       Offer offer) const {
    Flags flags;
    for (begin = direction_.next_block(row, begin, end, limit, flags); begin + kBlock <= end;
         begin = direction_.next_block(row, begin + kBlock, end, limit, flags)) {
      for (std::int64_t part = 0; part < kBlock; part += 8) {
        std::uint64_t found = 0;
        std::memcpy(&found, flags.data() + part, sizeof found);
        for (; found != 0; found &= found - 1)
          limit = offer(begin + part + std::countr_zero(found) / 8, limit);
      }
    }
    for (; begin < end; ++begin) limit = offer(begin, limit);
  }

  // Returns a limit that at least k elements of the row reach, if the search pays off: the k-th
  // best of the group maxima is such a limit.
  std::optional<Element> first_limit(const Element* row, std::int64_t extent) const {
    constexpr std::int64_t kMaxGroups = 512, kMinGroups = 64;
    constexpr std::int64_t kInsertion = 64, kComparison = 16,
                           // costs in cycles; throughput in elements per cycle
        kElementsAtOnce = 8;
    const auto wanted = static_cast<std::uint64_t>(4 * k_);
    const auto groups =
        std::clamp(static_cast<std::int64_t>(std::bit_ceil(wanted)), kMinGroups, kMaxGroups);
    const std::int64_t doublings = std::bit_width(static_cast<std::uint64_t>(extent / k_));
    if (extent < 4 * groups ||
        k_ * doublings * kInsertion < extent / kElementsAtOnce + groups * kComparison)
      return std::nullopt;
    std::array<Element, kMaxGroups> good;
    direction_.find_good(row, extent, groups, good.data());
    std::array<Item, kMaxGroups> items;
    for (std::int64_t k = 0; k < groups; ++k)
      items[static_cast<std::size_t>(k)] = item_at(good.data(), k);
    select_items(items.data(), items.data() + (k_ - 1), items.data() + groups);
    return direction_.next_after(good[items[static_cast<std::size_t>(k_ - 1)].position()]);
  }

  std::span<const Item> held_in_order(const Element* row, std::int64_t begin, std::int64_t end) {
    Item* items = items_;
    std::int64_t count = 0;
    const std::optional<Element> limit = first_limit(row + begin, end - begin);
    if (!limit) {
      count = std::min(end - begin, k_);
      for (std::int64_t k = 0; k < count; ++k) items[k] = item_at(row, begin + k);
      sort_items(items, items + count);
      begin += count;
      if (begin == end) return {items, static_cast<std::size_t>(count)};
    }
    const auto worst = [&] { return row[items[k_ - 1].position()]; };
    for_each_better(row, begin, end, limit ? *limit : worst(),
                    [&](std::int64_t at, Element so_far) {
                      const Item item = item_at(row, at);
                      if (count == k_ && !(item < items[k_ - 1])) return so_far;
                      count += count < k_ ? 1 : 0;
                      std::int64_t place = count - 1;
                      for (; place > 0 && item < items[place - 1]; --place)
                        items[place] = items[place - 1];
                      items[place] = item;
                      return count == k_ ? worst() : so_far;
                    });
    return {items, static_cast<std::size_t>(count)};
  }

  std::span<const Item> cut_back(const Element* row, std::int64_t begin, std::int64_t end) {
    Item* items = items_;
    std::int64_t count = std::min(end - begin, 2 * k_);
    for (std::int64_t k = 0; k < count; ++k) items[k] = item_at(row, begin + k);
    const auto cut = [&] {
      select_items(items, items + (k_ - 1), items + count);
      count = k_;
      return row[items[k_ - 1].position()];
    };
    if (count < end - begin) {
      const std::int64_t rest = begin + count;
      for_each_better(row, rest, end, cut(), [&](std::int64_t at, Element limit) {
        items[count++] = item_at(row, at);
        return count == 2 * k_ ? cut() : limit;
      });
    }
    if (count > k_) cut();
    sort_items(items, items + count);
    return {items, static_cast<std::size_t>(count)};
  }

  std::span<const Item> sorted(const Element* row, std::int64_t begin, std::int64_t end) {
    std::span<Item> items(items_, static_cast<std::size_t>(end - begin));
    const std::span<Item> spare(spare_, items.size());
    for (std::int64_t at = begin; at < end; ++at)
      items[static_cast<std::size_t>(at - begin)] = item_at(row, at);
    const auto wanted = static_cast<std::size_t>(std::min(end - begin, k_));
    if (wanted < items.size()) radix_select(items, spare, wanted);
    return radix_sort(items.first(wanted), spare);
  }

  const Direction<Order>& direction_;
  std::int64_t k_;
  bool takes_few_;
  Item *items_, *spare_;
};

struct Sizes {
  std::int64_t rows = 1, extent = 1, inner = 1, k = 0;
};

template <class Order>
class TopK {
  using Element = typename Order::Element;
  using Finder = Best<Order>;
  using Item = typename Finder::Item;

 public:
  TopK(const Direction<Order>& direction, const HostCall& call, const Sizes& sizes,
       const Element* x, Element* values, std::int64_t* indices)
      : direction_(direction),
        call_(call),
        sizes_(sizes),
        x_(x),
        values_(values),
        indices_(indices) {}

  void run() const {
    if (sizes_.inner > 1) return run_columns();
    const bool is_long = sizes_.extent >= 2 * kPart && Finder::takes_few(kPart, sizes_.k);
    if (is_long && sizes_.rows < call_.thread_count) return run_parts();
    const PerThread<Item> memory(call_, item_count());
    const std::int64_t chunk = std::max<std::int64_t>(1, kPart / 2 / sizes_.extent);
    for_each_part(sizes_.rows, chunk, call_.thread_count,
                  [&](std::size_t thread, std::int64_t begin, std::int64_t end) {
                    Finder finder(direction_, sizes_.extent, sizes_.k, memory[thread]);
                    for (; begin < end; ++begin) {
                      const Element* row = x_ + begin * sizes_.extent;
                      write(row, finder.find(row, 0, sizes_.extent), begin * sizes_.k, 1);
                    }
                  });
  }

 private:
  std::int64_t item_count() const { return Finder::item_count(sizes_.extent, sizes_.k); }

  void write(const Element* row, std::span<const Item> best, std::int64_t at,
             std::int64_t stride) const {
    for (const Item& item : best) {
      if (values_ != nullptr) values_[at] = row[item.position()];
      if (indices_ != nullptr) indices_[at] = static_cast<std::int64_t>(item.position());
      at += stride;
    }
  }

  // Selects the best of each part of a row, then the best of these. The partition does not affect
  // the result, because the order is total.
  void run_parts() const {
    // Each part must find its own limit: at most one part per thread.
    const std::int64_t part =
        std::max(kPart, (sizes_.extent + call_.thread_count - 1) / call_.thread_count);
    const std::int64_t parts = (sizes_.extent + part - 1) / part;
    std::vector<std::vector<Item>> found(static_cast<std::size_t>(sizes_.rows * parts));
    const PerThread<Item> memory(call_, item_count());
    for_each_part(sizes_.rows * parts, 1, call_.thread_count,
                  [&](std::size_t thread, std::int64_t begin, std::int64_t end) {
                    Finder finder(direction_, sizes_.extent, sizes_.k, memory[thread]);
                    for (; begin < end; ++begin) {
                      const std::int64_t first = begin % parts * part;
                      const auto best = finder.find(x_ + begin / parts * sizes_.extent, first,
                                                    std::min(first + part, sizes_.extent));
                      found[static_cast<std::size_t>(begin)].assign(best.begin(), best.end());
                    }
                  });
    std::vector<Item> all;
    for (std::int64_t row = 0; row < sizes_.rows; ++row) {
      all.clear();
      for (std::int64_t at = row * parts; at < (row + 1) * parts; ++at) {
        const auto& some = found[static_cast<std::size_t>(at)];
        all.insert(all.end(), some.begin(), some.end());
      }
      select_items(all.data(), all.data() + (sizes_.k - 1), all.data() + all.size());
      sort_items(all.data(), all.data() + sizes_.k);
      write(x_ + row * sizes_.extent, std::span(all).first(static_cast<std::size_t>(sizes_.k)),
            row * sizes_.k, 1);
    }
  }

  // Transposes several columns at a time into rows, so that whole cache lines are read.
  void run_columns() const {
    constexpr std::int64_t kLineBytes = 64, kMaxBytes = 256 << 10, kMaxColumns = 64;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    const std::int64_t fits = std::min(kMaxBytes / (kBytes * sizes_.extent), kMaxColumns);
    const std::int64_t width = std::min(std::max(fits, kLineBytes / kBytes), sizes_.inner);
    const std::int64_t groups = (sizes_.inner + width - 1) / width;
    const PerThread<Item> memory(call_, item_count());
    const PerThread<Element> rows(call_, width * sizes_.extent);
    const std::int64_t chunk = std::max<std::int64_t>(1, kPart / 2 / (sizes_.extent * width));
    for_each_part(sizes_.rows * groups, chunk, call_.thread_count,
                  [&](std::size_t thread, std::int64_t begin, std::int64_t end) {
                    Finder finder(direction_, sizes_.extent, sizes_.k, memory[thread]);
                    for (; begin < end; ++begin)
                      run_group(begin / groups, begin % groups * width, width, rows[thread],
                                finder);
                  });
  }

  void run_group(std::int64_t row, std::int64_t first, std::int64_t width, Element* rows,
                 Finder& finder) const {
    const std::int64_t count = std::min(width, sizes_.inner - first);
    const Element* from = x_ + row * sizes_.extent * sizes_.inner + first;
    for (std::int64_t at = 0; at < sizes_.extent; ++at) {
      for (std::int64_t column = 0; column < count; ++column)
        rows[column * sizes_.extent + at] = from[at * sizes_.inner + column];
    }
    for (std::int64_t column = 0; column < count; ++column) {
      const Element* values = rows + column * sizes_.extent;
      write(values, finder.find(values, 0, sizes_.extent),
            row * sizes_.k * sizes_.inner + first + column, sizes_.inner);
    }
  }

  const Direction<Order>& direction_;
  const HostCall& call_;
  Sizes sizes_;
  const Element* x_;
  Element* values_;
  std::int64_t* indices_;
};

}  // namespace

bool top_k_kernel(const HostCall& call) {
  const Tensor& x = *call.operand(0);
  const auto rank = static_cast<std::int64_t>(x.rank());
  std::int64_t axis = call.integer("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  Shape shape = x.shape();
  Sizes sizes{1, shape[static_cast<std::size_t>(axis)], 1, call.integer("k", 1)};
  for (std::int64_t k = 0; k < axis; ++k) sizes.rows *= shape[static_cast<std::size_t>(k)];
  for (std::int64_t k = axis + 1; k < rank; ++k) sizes.inner *= shape[static_cast<std::size_t>(k)];
  if (sizes.k < 0 || sizes.k > sizes.extent || sizes.extent > kMaxKeyed) return false;
  shape[static_cast<std::size_t>(axis)] = sizes.k;
  const bool is_largest = call.flag("largest", true);
  return with_order(x.dtype(), [&]<class Order>(Order) {
    using Element = typename Order::Element;
    auto* values = call.result<Element>(0, shape);
    auto* indices = call.result<std::int64_t>(1, shape);
    if (sizes.rows * sizes.inner * sizes.k == 0) return true;
    const auto* from = x.as<Element>().data();
    const Direction<Order> way = is_largest ? direction<Order, true>() : direction<Order, false>();
    TopK<Order>(way, call, sizes, from, values, indices).run();
    return true;
  });
}

}  // namespace tenon::inline host
