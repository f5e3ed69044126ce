#pragma once

#include "passes/fuse/rules.h"
#include "passes/remarks.h"

namespace tenon::fusing {

/// Says of every node with whom it runs and why, and why not with its neighbours.
void tell(const Rules& rules, Remarks& remarks);

}  // namespace tenon::fusing
