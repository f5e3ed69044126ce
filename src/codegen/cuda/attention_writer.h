#pragma once

#include "codegen/cuda/attention.h"
#include "codegen/cuda/value_writer.h"

namespace tenon::codegen::cuda {

/// What a kernel does that is attention as a whole: its rows by `attention_template()`, with what
/// becomes of a score written from the nest.
void write_attention(const LoopNest& nest, const AttentionTile& tile, Lines& lines,
                     ValueWriter& values);

/// How many blocks of it a multiprocessor is to have at once.
unsigned blocks_together(const AttentionTile& tile);

}  // namespace tenon::codegen::cuda
