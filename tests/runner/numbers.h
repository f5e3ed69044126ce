#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <string>

namespace tenon::testing {

struct Tolerance {
  double relative = 0, absolute = 0;
};
/// How far results of a dtype may lie from what they should be; belongs to the dtype, not the test.
Tolerance tolerance_of(DType dtype);

/// Empty if the two agree (NaN with NaN, infinities exactly); otherwise what differs most.
std::string difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

/// Uniform in [low, high], the same for the same seed.
Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed, double low, double high);

}  // namespace tenon::testing
