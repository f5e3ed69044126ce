#pragma once

#include "program/program.h"

#include <string>

namespace tenon {

/// A program as text, but for its code and constants: symbols, buffers, kernels, steps; the parts
/// and the routine of one that has them.
std::string to_string(const Program& program);

/// Its arena alone: the buffers in it by first step, with the place and the steps they are alive
/// in.
std::string plan_text(const Program& program);

}  // namespace tenon
