#pragma once

#include "program/program.h"

namespace tenon::inline program {

/// Throws Error, naming the buffer or step, unless every invariant of the runtime holds: constants
/// and planned buffers lie within bounds, steps use only live buffers, inputs and outputs are
/// consistent. Machine code cannot be checked: a program is as trusted as an executable.
void verify(const Program& program);

}  // namespace tenon::inline program
