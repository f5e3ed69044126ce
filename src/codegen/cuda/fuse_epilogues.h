#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Fuses a contraction with the elementwise nest that alone reads its result, if both run over the
/// same positions in any order of loops. The second nest may have a loop over channels where the
/// contraction has loops over groups and over channels of a group (grouped convolutions).
void fuse_epilogues(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
