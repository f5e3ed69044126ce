#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Inlines scratch buffers with a single use into their consumer. Every element then maps to a
/// thread, instead of every image to a block, and the scratch disappears.
void inline_scratch(NestSequence::NestCall& part);

}  // namespace tenon::codegen::cuda
