#pragma once

#include "target/target.h"

#include <memory>
#include <string>

namespace tenon::codegen::cpu {

/// Returns the target of a described processor (`cpu_facts`), or of this machine for "native".
/// Throws Error of kind Usage for an unknown name.
std::shared_ptr<const Target> cpu_target(const std::string& name = "native");

}  // namespace tenon::codegen::cpu
