#pragma once

#include "program/program.h"

namespace tenon {

/// Throws Error, naming the buffer or step, unless all that a run relies on holds: constants and
/// planned buffers lie inside what holds them, steps use buffers while these are alive, inputs and
/// outputs are where the program says. What its code does nobody can check: a program is trusted as
/// an executable is.
void verify(const Program& program);

}  // namespace tenon
