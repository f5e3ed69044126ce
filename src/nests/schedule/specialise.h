#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// Shape specialization: substitutes values for symbols; extents without other symbols become
/// constants.
NestSequence specialised(NestSequence sequence, const DimBindings& values);

/// Returns whether the nests depend on one of the symbols.
bool depends_on(const NestSequence& sequence, const DimBindings& values);

}  // namespace tenon::nests
