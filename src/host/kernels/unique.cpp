#include "host/kernels/list.h"
#include "host/kernels/radix_sort.h"

#include <numeric>

namespace tenon::inline host {
namespace {

// Returns the start of each group of equal elements in the sorted items, plus the end.
template <class Key>
std::vector<std::size_t> group_begins(std::span<const Keyed<Key>> items) {
  std::vector<std::size_t> begins;
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k == 0 || items[k].key() != items[k - 1].key()) begins.push_back(k);
  }
  begins.push_back(items.size());
  return begins;
}

template <class Order>
void write_groups(const HostCall& call, const Tensor& x, bool is_sorted) {
  using Element = typename Order::Element;
  using Item = Keyed<typename Order::Key>;
  const auto elements = x.as<Element>();
  auto* memory = reinterpret_cast<Item*>(call.scratch(2 * elements.size() * sizeof(Item)));
  const std::span<Item> items(memory, elements.size());
  const std::span<Item> spare(memory + elements.size(), elements.size());
  for (std::size_t k = 0; k < elements.size(); ++k) items[k] = Item(Order::key(elements[k]), k);
  const std::span<const Item> sorted = radix_sort(items, spare);
  const std::vector<std::size_t> begins = group_begins(sorted);
  const std::size_t count = begins.size() - 1;
  // Order of the groups in the result. The first item of a group is its first occurrence.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!is_sorted) {
    std::ranges::sort(order, {},
                      [&](std::size_t group) { return sorted[begins[group]].position(); });
  }
  const Shape per_group{static_cast<std::int64_t>(count)};
  auto* y = call.result<Element>(0, per_group);
  auto* first = call.result<std::int64_t>(1, per_group);
  auto* inverse = call.result<std::int64_t>(2, {x.size()});
  auto* counts = call.result<std::int64_t>(3, per_group);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t begin = begins[order[k]], end = begins[order[k] + 1];
    const std::size_t position = sorted[begin].position();
    if (y != nullptr) y[k] = elements[position];
    if (first != nullptr) first[k] = static_cast<std::int64_t>(position);
    if (counts != nullptr) counts[k] = static_cast<std::int64_t>(end - begin);
    if (inverse == nullptr) continue;
    for (std::size_t at = begin; at < end; ++at)
      inverse[sorted[at].position()] = static_cast<std::int64_t>(k);
  }
}

}  // namespace

bool unique_kernel(const HostCall& call) {
  const Tensor& x = *call.operand(0);
  const bool has_axis = call.attributes.find("axis") != nullptr;
  if ((has_axis && x.rank() != 1) || x.size() == 0 || x.size() > kMaxKeyed) return false;
  if (has_axis && call.integer("axis", 0) != 0 && call.integer("axis", 0) != -1) return false;
  return with_order(x.dtype(), [&]<class Order>(Order) {
    write_groups<Order>(call, x, call.flag("sorted", true));
    return true;
  });
}

}  // namespace tenon::inline host
