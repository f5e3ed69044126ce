#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// Long sums (and other folds) that few positions share, as a batch norm's over an image, are taken
/// in parts: a nest gives the sums of a fixed number of pieces, each small enough for the first
/// cache and an item of work, and the nest itself adds these up in order. So results do not depend
/// on threads, and sums that go through the same elements go through them once. Products of
/// matrices stay as they are.
void split_sums(NestSequence& sequence);

}  // namespace tenon::nests
