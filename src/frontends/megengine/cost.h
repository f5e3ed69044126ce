#pragma once

#include "frontends/megengine/vocabulary.h"

#include <span>

namespace tenon::megengine {

/// The operations that MegEngine counts for an operator of this type; 0 for types it counts none
/// of. Shapes that are not known are empty.
std::int64_t computation_of(std::string_view type, const Param& param,
                            std::span<const Extents> in_shapes,
                            std::span<const Extents> out_shapes);

}  // namespace tenon::megengine
