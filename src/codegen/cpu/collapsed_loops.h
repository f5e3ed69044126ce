#pragma once

#include "codegen/nest_names.h"

namespace tenon::codegen::cpu {

/// Two loops around a sum of products, of which the inner one alone may be too short for the rows
/// of a tile (a batch that is a symbol, a few sequences), become one where every operand and result
/// runs through both in one piece, or through neither. `all`: as many loops as can be, however long
/// they are.
void collapse_rows(LoopNest& nest, bool all = false);

}  // namespace tenon::codegen::cpu
