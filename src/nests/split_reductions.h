#pragma once

#include "nests/nest_builder.h"

namespace tenon::nests {

/// Piece size of a split reduction.
struct ReductionPieces {
  /// Bytes read per piece: fits L1 while vectors of adjacent positions traverse it, or keeps the
  /// threads of a GPU busy.
  std::int64_t bytes = 32 << 10;
  /// Also splits the final fold if it is long.
  bool are_split_again = false;
};

/// Splits long reductions with few results, such as batch norm statistics, into two stages: one
/// nest computes a fixed number of partial results, each a work item, and the original nest folds
/// them in order. Results do not depend on the number of threads, and reductions over the same
/// elements share one traversal. GEMMs are not split.
void split_reductions(NestSequence& sequence, const ReductionPieces& wanted = {});

}  // namespace tenon::nests
