#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cuda {

/// Indices of a copy's source that readers may take over: affine ones, or quotients too, as in
/// copies of keys and values for every head of a group.
enum class SourceIndices { Affine, Any };

/// Nests that read the source: all, or all but GEMMs that would no longer be one.
enum class Readers { All, KeepGemms };

/// Forwards pure copies: nests read the source of a copy directly. A kernel that only moves or
/// widens elements costs more than the reads that it improves.
void inline_copies(NestSequence& sequence, SourceIndices indices = SourceIndices::Affine,
                   Readers readers = Readers::KeepGemms);

}  // namespace tenon::codegen::cuda
