#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <string>

namespace tenon::testing {

struct Tolerance {
  double relative = 0, absolute = 0;
};
/// Tolerance for results of a dtype; belongs to the dtype, not to the test.
Tolerance tolerance_of(DType dtype);

/// Empty if the two agree (NaN with NaN, infinities exactly); otherwise the largest difference.
std::string difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

/// Uniform in [low, high], determined by the seed.
Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed, double low, double high);

}  // namespace tenon::testing
