#pragma once

#include "program/program.h"

namespace tenon::inline program {

/// True if every read of an input precedes (by step) the first write of an output, so that both may
/// share one buffer if that step allows it. False if host operators or control flow use one of
/// them, because they may keep it.
bool is_read_first(const Program& program, std::size_t input, std::size_t output);

}  // namespace tenon::inline program
