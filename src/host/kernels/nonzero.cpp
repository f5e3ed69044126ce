#include "host/kernels/list.h"
#include "host/kernels/parallel.h"
#include "host/kernels/sort_key.h"

#include <array>
#include <cstring>

namespace tenon::inline host {
namespace {

constexpr std::int64_t kPart = 32768;

template <class Order>
std::int64_t count_nonzero(const typename Order::Element* x, std::int64_t begin, std::int64_t end) {
  std::int64_t count = 0;
  for (; begin < end; ++begin) count += Order::is_zero(x[begin]) ? 0 : 1;
  return count;
}

// Writes the coordinates of the nonzero elements in [begin, end), from column `at` of `count` on.
template <class Order>
class IndexWriter {
 public:
  IndexWriter(const Tensor& x, std::int64_t* y, std::int64_t count)
      : x_(x.as<typename Order::Element>().data()),
        shape_(x.shape()),
        last_(shape_.empty() ? 1 : shape_.back()),
        y_(y),
        count_(count) {}

  void write(std::int64_t begin, std::int64_t end, std::int64_t at) const {
    std::array<std::int64_t, 256> found;
    while (begin < end) {
      const std::int64_t row = begin / last_, first = row * last_;
      const std::int64_t stop = std::min({begin + std::ssize(found), first + last_, end});
      std::int64_t some = 0;
      for (; begin < stop; ++begin) {
        found[static_cast<std::size_t>(some)] = begin - first;
        some += Order::is_zero(x_[begin]) ? 0 : 1;
      }
      if (some == 0 || shape_.empty()) continue;
      const std::size_t last_axis = shape_.size() - 1;
      std::memcpy(y_ + static_cast<std::int64_t>(last_axis) * count_ + at, found.data(),
                  static_cast<std::size_t>(some) * sizeof(std::int64_t));
      std::int64_t rest = row;
      for (std::size_t axis = last_axis; axis-- > 0; rest /= shape_[axis])
        std::fill_n(y_ + static_cast<std::int64_t>(axis) * count_ + at, some, rest % shape_[axis]);
      at += some;
    }
  }

 private:
  const typename Order::Element* x_;
  const Shape& shape_;
  std::int64_t last_;
  std::int64_t* y_;
  std::int64_t count_;
};

}  // namespace

bool nonzero_kernel(const HostCall& call) {
  const Tensor& x = *call.operand(0);
  return with_order(x.dtype(), [&]<class Order>(Order) {
    const auto* elements = x.as<typename Order::Element>().data();
    const std::int64_t size = x.size(), parts = (size + kPart - 1) / kPart;
    std::vector<std::int64_t> places(static_cast<std::size_t>(parts));
    for_each_part(
        parts, 1, call.thread_count, [&](std::size_t, std::int64_t begin, std::int64_t end) {
          for (; begin < end; ++begin)
            places[static_cast<std::size_t>(begin)] =
                count_nonzero<Order>(elements, begin * kPart, std::min((begin + 1) * kPart, size));
        });
    std::int64_t count = 0;
    for (std::int64_t& place : places) count += std::exchange(place, count);
    auto* y = call.result<std::int64_t>(0, {static_cast<std::int64_t>(x.rank()), count});
    if (count == 0) return true;
    const IndexWriter<Order> writer(x, y, count);
    for_each_part(parts, 1, call.thread_count,
                  [&](std::size_t, std::int64_t begin, std::int64_t end) {
                    for (; begin < end; ++begin)
                      writer.write(begin * kPart, std::min((begin + 1) * kPart, size),
                                   places[static_cast<std::size_t>(begin)]);
                  });
    return true;
  });
}

}  // namespace tenon::inline host
