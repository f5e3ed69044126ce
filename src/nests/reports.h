#pragma once

#include "nests/loop_nest.h"

namespace tenon::nests {

/// Whether it is a quotient or remainder of integers, which zero has none of.
bool divides_integers(const ScalarNode& node);

/// Whether data may do something wrong that a kernel of this nest would report (`Check`).
bool may_report(const LoopNest& nest);

}  // namespace tenon::nests
