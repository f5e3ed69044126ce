#pragma once

#include "target/facts.h"

namespace tenon {

/// What is known of an NVIDIA GPU of compute capability 9: units are its multiprocessors, the
/// nearest level is what one of them shares among its threads. Measured on one H200.
TargetFacts gpu_facts(const std::string& architecture);

}  // namespace tenon
