#pragma once

#include "ir/constant.h"
#include "ir/lexer.h"

#include <string>

namespace tenon::inline ir {

/// Appends the type and the payload (see docs/ir.md), e.g. "f32[2] [1, 2]".
void append_constant(std::string& out, const Constant& constant);
/// Reads the text form that `append_constant` writes.
Constant read_constant(Lexer& lexer);

}  // namespace tenon::inline ir
