#pragma once

#include "codegen/nest_names.h"
#include "target/candidate.h"

#include <vector>

namespace tenon::codegen::cpu {

/// Returns all candidates for the work, refusals included. Ties in cost go to the first. The last
/// candidate, scalar or vectorized loops without tiles, accepts any work.
std::vector<Candidate> candidates_for(const KernelWork& work, const TargetFacts& facts);

}  // namespace tenon::codegen::cpu
