#pragma once

#include "codegen/nest_names.h"
#include "target/candidate.h"

#include <vector>

namespace tenon::codegen::cpu {

/// All that there are for the work, those that refuse among them. Where costs are equal the first
/// is the one to take. The last, plain loops, accepts whatever there is.
std::vector<Candidate> candidates_for(const KernelWork& work, const TargetFacts& facts);

}  // namespace tenon::codegen::cpu
