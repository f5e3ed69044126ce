#pragma once

#include "nests/loop_nest.h"

#include <string>
#include <vector>

namespace tenon::nests {

/// What is wrong with a nest, a sentence each; nothing where nothing was found. It is looked at
/// - whether names and numbers of loops, locals, buffers and extents are known where they stand;
/// - whether loops are run as their kind can be: items of work only outside, lanes and jams of
/// passes that do not
///   depend on each other, or of folds;
/// - bounds: whether an access without a check surely leaves its buffer;
/// - order: whether what the nest makes itself is read before it is written, or where nothing is
/// written;
/// - parallel: whether passes said to be independent write the same element, or read what another
/// one writes. Only what is proven is told: coordinates that are no affine expression of loops are
/// believed.
std::vector<std::string> faults_of(const LoopNest& nest);

/// Throws InternalError with the first fault and the nest.
void verify(const LoopNest& nest);

}  // namespace tenon::nests
