#pragma once

#include "program/program.h"

namespace tenon {

/// Throws Error, saying what, where the routine of a program made of parts does not hold together: a
/// slot that is read before it is written or written twice, a part that takes other operands.
void require_routine(const Program& program);

}  // namespace tenon
