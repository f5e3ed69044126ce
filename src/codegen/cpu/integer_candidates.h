#pragma once

#include "target/candidate.h"

namespace tenon::codegen::cpu {

/// The ways to sum products of bytes; none where the nest does not.
std::vector<Candidate> integer_candidates(const KernelWork& work, const TargetFacts& facts);

}  // namespace tenon::codegen::cpu
