#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Has nests read what others only copied where it came from: a kernel that moves or widens
/// elements takes longer than the reads that it saves.
void inline_copies(NestSequence& sequence);

}  // namespace tenon::codegen::cuda
