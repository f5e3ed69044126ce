#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// What a piece of a long sum may be.
struct SumPieces {
  /// That are read for one: what stays in a processor's first cache while vectors of neighbours go
  /// over it one after another, or keeps the threads of a device busy.
  std::int64_t bytes = 32 << 10;
  /// sums of pieces that are long themselves
  bool are_split_again = false;
};

/// Long sums (and other folds) that few positions share, as a batch norm's over an image, are taken
/// in parts: a nest gives the sums of a fixed number of pieces, each an item of work, and the nest
/// itself adds these up in order. So results do not depend on threads, and sums that go through the
/// same elements go through them once. Products of matrices stay as they are.
void split_sums(NestSequence& sequence, const SumPieces& wanted = {});

}  // namespace tenon::nests
