#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <vector>

namespace tenon::inline ops {

/// Order of a tensor's elements: numbers by value with NaN greatest, strings by their bytes.
class ElementOrder {
 public:
  explicit ElementOrder(const Tensor& tensor);

  /// Returns a negative number, zero or a positive number if element `a` is less than, equal to or
  /// greater than element `b`.
  int compare(std::int64_t a, std::int64_t b) const;

 private:
  const Tensor& tensor_;
  std::vector<double> reals_;
  std::vector<std::int64_t> integers_;  // unsigned ones are shifted to keep their order
};

}  // namespace tenon::inline ops
