#pragma once

#include "passes/fuse/rules.h"
#include "passes/journal.h"

namespace tenon::fusing {

/// Says of every node with whom it runs and why, and why not with its neighbours.
void tell(const Rules& rules, Journal& journal);

}  // namespace tenon::fusing
