#pragma once

#include "ir/constant.h"
#include "ir/lexer.h"

#include <string>

namespace tenon {

/// Appends "f32[2] [1, 2]": the type and what `docs/ir.md` calls the payload.
void append_constant(std::string& out, const Constant& constant);
/// Reads the same.
Constant read_constant(Lexer& lexer);

}  // namespace tenon
