#pragma once

#include "target/candidate.h"

namespace tenon::codegen::cpu {

/// Returns the candidates for an int8 contraction; empty for other nests.
std::vector<Candidate> integer_candidates(const KernelWork& work, const TargetFacts& facts);

}  // namespace tenon::codegen::cpu
