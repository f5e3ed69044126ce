#pragma once

#include "ir/dim.h"

#include <string_view>

namespace tenon::frontends::torch {

/// Parses an integer expression of an exported program: SymPy's `srepr` ("Mul(Integer(2),
/// Symbol('s0', positive=True))") or, in files of early versions, arithmetic ("2*s0"). Symbols take
/// their range from `ranges`. Throws Error, Unsupported for functions that extents lack.
Dim parse_sym_expr(std::string_view text, const SymbolRanges& ranges);

}  // namespace tenon::frontends::torch
