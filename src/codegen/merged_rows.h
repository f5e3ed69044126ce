#pragma once

#include "codegen/loop_nest.h"

namespace tenon::codegen {

/// Two loops around a sum of products, of which the inner one alone may be too short for the rows of a
/// tile (a batch that is a symbol, a few sequences), become one where every operand and result runs
/// through both in one piece, or through neither.
void merge_rows(LoopNest& nest);

}  // namespace tenon::codegen
