#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Has loops compute what they would read back, once, from a nest's own memory: then every element
/// is a thread's, not every image, and nothing is kept.
void inline_scratch(NestSequence::Part& part);

}  // namespace tenon::codegen::cuda
