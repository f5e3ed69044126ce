#pragma once

#include "memory/device.h"
#include "memory/problem.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::documents {

/// Values that the backward pass of a recorded training step needs.
struct RunReading {
  /// by the tags of arguments, in place of the values that functions retain
  bool uses_tags = false;
  /// functions fused as a compiler does (`chainer/fused.h`)
  bool is_fused = false;
};

/// A run that a document records, as a memory problem.
struct RecordedRun {
  memory::Problem problem;
  /// how it was read
  std::string note;
  /// Problems of micro-batches, fewest first, built on demand. Each covers one micro-batch; or all
  /// of them, if they are consecutive in the problem.
  std::vector<std::pair<int, std::function<memory::Problem()>>> split;
};

}  // namespace tenon::documents
