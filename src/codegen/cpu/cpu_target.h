#pragma once

#include "codegen/object_cache.h"
#include "target/target.h"

#include <memory>
#include <string>

namespace tenon::codegen::cpu {

/// Returns the target of a described processor (`cpu_facts`), or of this machine for "native".
/// Object code is looked up in the cache, if there is one, before it is generated. Throws Error of
/// kind Usage for an unknown name.
std::shared_ptr<const Target> cpu_target(const std::string& name = "native",
                                         std::shared_ptr<const ObjectCache> cache = nullptr);

/// Processors, with the user's cache of object code.
TargetKind cpu_kind();

}  // namespace tenon::codegen::cpu
