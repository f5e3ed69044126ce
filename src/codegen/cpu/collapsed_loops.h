#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cpu {

/// Collapses two parallel loops around a contraction into one if the inner loop may be too short to
/// fill the rows of a register tile (a symbolic batch, a few sequences). Every operand and result
/// must be contiguous over both loops or independent of both. `all` collapses every possible
/// loop, regardless of its extent.
void collapse_rows(LoopNest& nest, bool all = false);

}  // namespace tenon::codegen::cpu
