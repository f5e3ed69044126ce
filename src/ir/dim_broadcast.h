#pragma once

#include "ir/dim.h"

namespace tenon::inline ir {

/// Returns the common extent of two axes that broadcast, assuming that they are equal or one of
/// them is 1. An extent that can never be 1 is the result; otherwise it prints as `broadcast(n,
/// m)`.
Dim broadcast(const Dim& a, const Dim& b);

/// Returns whether an axis of extent `own` may be repeated to fill one of extent `whole`, assuming
/// that the two broadcast: false if both have the same extent or `own` can never be 1.
bool may_repeat(const Dim& own, const Dim& whole);

}  // namespace tenon::inline ir
