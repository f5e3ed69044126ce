#pragma once

#include "nests/loop_nest.h"

#include <string>
#include <vector>

namespace tenon::nests {

/// Returns the faults of a nest, one sentence each; empty if valid. Checks
/// - structure: ids of loops, locals, buffers and extents are valid at their uses;
/// - execution kinds: parallel loops are outermost; vector lanes and jams are independent loops or
///   folds;
/// - bounds: accesses without a check that provably leave their buffer;
/// - order: scratch and results that are read before they are written, or where they are never
///   written;
/// - parallelism: iterations of independent loops that write the same element, or read an element
///   that another one writes.
/// Reports only proven faults: coordinates that are not affine are trusted.
std::vector<std::string> faults_of(const LoopNest& nest);

/// Throws InternalError with the first fault and the nest.
void verify(const LoopNest& nest);

}  // namespace tenon::nests
