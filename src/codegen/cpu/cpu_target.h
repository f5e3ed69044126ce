#pragma once

#include "target/target.h"

#include <memory>
#include <string>

namespace tenon::codegen::cpu {

/// Code for a processor: one that is described (`cpu_facts`), or this very machine, "native".
/// Throws Error of kind Usage for a name that is none.
std::shared_ptr<const Target> cpu_target(const std::string& name = "native");

}  // namespace tenon::codegen::cpu
