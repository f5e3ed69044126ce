#pragma once

#include "codegen/cuda/attention_split.h"
#include "codegen/cuda/attention_wgmma.h"
#include "codegen/cuda/value_writer.h"

namespace tenon::codegen::cuda {

/// Writes the body of an attention kernel: a call of `attention_template()`, with the score
/// expression (scale, mask) written from the nest.
void write_attention(const LoopNest& nest, const AttentionTile& tile, Lines& lines,
                     ValueWriter& values);

/// Writes a call of `wgmma_attention_template()`.
void write_wgmma_attention(const LoopNest& nest, const AttentionTile& tile,
                           const WgmmaAttention& attention, Lines& lines, ValueWriter& values);

/// Writes a call of `split_attention_template()`.
void write_split_attention(const LoopNest& nest, const AttentionTile& tile,
                           const SplitAttention& attention, Lines& lines, ValueWriter& values);

/// Minimum number of resident blocks per multiprocessor (`__launch_bounds__`).
unsigned min_blocks_per_multiprocessor(const AttentionTile& tile);

}  // namespace tenon::codegen::cuda
