#pragma once

#include "documents/megengine/vocabulary.h"

#include <span>

namespace tenon::documents::megengine {

/// Returns the operations that MegEngine counts for an operator of this type; 0 for uncounted
/// types. Unknown shapes are empty.
std::int64_t computation_of(std::string_view type, const Param& param,
                            std::span<const Extents> in_shapes,
                            std::span<const Extents> out_shapes);

}  // namespace tenon::documents::megengine
