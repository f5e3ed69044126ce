#include "ops/families/element_order.h"

#include <cmath>
#include <limits>

namespace tenon::inline ops {
namespace {

template <class T>
int compare_values(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

ElementOrder::ElementOrder(const Tensor& tensor) : tensor_(tensor) {
  if (is_float(tensor.dtype())) {
    reals_ = tensor.reals();
  } else if (tensor.dtype() != DType::String) {
    integers_ = tensor.integers();
  }
  if (tensor.dtype() == DType::U64) {
    for (std::int64_t& value : integers_) value ^= std::numeric_limits<std::int64_t>::min();
  }
}

int ElementOrder::compare(std::int64_t a, std::int64_t b) const {
  const auto left = static_cast<std::size_t>(a), right = static_cast<std::size_t>(b);
  if (!integers_.empty()) return compare_values(integers_[left], integers_[right]);
  if (reals_.empty()) return compare_values(tensor_.strings()[left], tensor_.strings()[right]);
  const double x = reals_[left], y = reals_[right];
  if (std::isnan(x) || std::isnan(y)) return compare_values(std::isnan(x), std::isnan(y));
  return compare_values(x, y);
}

}  // namespace tenon::inline ops
