#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Returns whether the node is an integer quotient or remainder, undefined for a zero divisor.
bool divides_integers(const ScalarNode& node);

/// Returns whether a kernel of this nest may report a data error (`Check`).
bool may_report(const LoopNest& nest);

}  // namespace tenon::nests
