#pragma once

#include "ir/constant.h"

#include <cstdint>
#include <string_view>

namespace tenon {

/// Stand-in numbers for a weight that a document names but does not hold: the same for the same
/// name. `fan_in` is how many products each result sums (He's deviation keeps activations of order
/// one); 0 for a bias or a shift, which stays small. Integers are small and not negative.
Constant seeded_weight(DType dtype, const Shape& shape, std::string_view name, std::int64_t fan_in);

}  // namespace tenon
