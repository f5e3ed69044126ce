#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <vector>

namespace tenon {

/// The order of a tensor's elements: numbers by value with NaN above all, strings by their bytes.
class ElementOrder {
 public:
  explicit ElementOrder(const Tensor& tensor);

  /// Below zero, zero or above, as element `a` comes before, with or after element `b`.
  int compare(std::int64_t a, std::int64_t b) const;

 private:
  const Tensor& tensor_;
  std::vector<double> reals_;
  std::vector<std::int64_t> integers_;  // unsigned ones moved down to keep their order
};

}  // namespace tenon
