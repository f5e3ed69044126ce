#pragma once

#include "nests/loop_nest.h"
#include "program/program.h"

#include <vector>

namespace tenon::codegen {

/// Kernels that are many and differ in numbers alone (the parts of a wide concat or split) become
/// one that is given them: each has to be compiled, and takes room. `nests` are those of the
/// program's kernels.
void share_general_kernels(std::vector<nests::LoopNest>& nests, Program& program);

}  // namespace tenon::codegen
