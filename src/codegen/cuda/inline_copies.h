#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Forwards pure copies: nests read the source of a copy directly. A kernel that only moves or
/// widens elements costs more than the reads that it improves.
void inline_copies(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
