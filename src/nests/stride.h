#pragma once

#include "nests/scalar.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::nests {

/// How much an integer grows with each step of a loop; nothing where that is not the same
/// everywhere.
std::optional<std::int64_t> growth(const Scalar& scalar, std::size_t loop);
/// How far apart the elements of neighbouring positions of a loop lie.
enum class Stride : std::uint8_t { Zero, Unit, Other };
Stride stride_along(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop);
Stride stride_along(const Scalar& load, std::size_t loop);
bool depends_on(const Scalar& scalar, std::size_t loop);

}  // namespace tenon::nests
