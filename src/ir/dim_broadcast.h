#pragma once

#include "ir/dim.h"

namespace tenon {

/// The extent of two axes that broadcast: they are equal or one of them is 1, by promise. One that
/// can never be 1 is the extent; else it prints as `broadcast(n, m)`.
Dim broadcast(const Dim& a, const Dim& b);

/// Whether an axis of extent `own` may, by promise, be repeated to fill one of extent `whole`:
/// false where both are the same extent, or `own` can never be 1.
bool may_repeat(const Dim& own, const Dim& whole);

}  // namespace tenon
