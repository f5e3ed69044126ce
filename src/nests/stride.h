#pragma once

#include "nests/scalar.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::nests {

/// Returns the increment of an integer per loop iteration; no value if it varies.
std::optional<std::int64_t> growth(const Scalar& scalar, std::size_t loop);
/// Distance between elements of consecutive positions of a loop.
enum class Stride : std::uint8_t { Zero, Unit, Other };
Stride stride_along(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop);
Stride stride_along(const Scalar& load, std::size_t loop);
bool depends_on(const Scalar& scalar, std::size_t loop);

}  // namespace tenon::nests
