#pragma once

#include "passes/definition/remarks.h"
#include "passes/fuse/rules.h"

namespace tenon::passes::fusing {

/// Emits remarks for every node: the kernel it shares and the reason, and the reasons against its
/// neighbours.
void report_verdicts(const Rules& rules, Remarks& remarks);

}  // namespace tenon::passes::fusing
