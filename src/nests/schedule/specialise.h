#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// The same nests where some symbols have the values given: what depends on nothing else becomes a
/// number.
NestSequence specialised(NestSequence sequence, const DimBindings& values);

/// Whether a value decides anything in the nests.
bool depends_on(const NestSequence& sequence, const DimBindings& values);

}  // namespace tenon::nests
