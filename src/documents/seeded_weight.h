#pragma once

#include "ir/constant.h"

#include <cstdint>
#include <string_view>

namespace tenon::documents {

/// Returns seeded numbers for a weight that a document names but does not contain, determined by
/// the name. `fan_in` is the number of products per result (He initialisation keeps activations of
/// order one); 0 for a bias or a shift, which stays small. Integers are small and nonnegative.
Constant seeded_weight(DType dtype, const Shape& shape, std::string_view name, std::int64_t fan_in);

}  // namespace tenon::documents
