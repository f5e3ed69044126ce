#pragma once

#include "program/program.h"

namespace tenon {

/// Whether all that reads an input has done so by the step that first writes an output, by their
/// positions: so that, where that step allows it, both may lie in one place. No where operators'
/// own functions or control flow have one of them in their hands: they may keep it.
bool is_read_first(const Program& program, std::size_t input, std::size_t output);

}  // namespace tenon
