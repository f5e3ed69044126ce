#pragma once

#include "frontends/aitemplate/read_dump.h"
#include "frontends/findings.h"

namespace tenon::aitemplate {

/// Computes again what a dump claims: shapes, depths, order, names, flags, accessors, conditions of
/// kernels and what tensors and operators say of one another.
Findings check_dump(const Dump& dump, const SourceMap& places);

}  // namespace tenon::aitemplate
