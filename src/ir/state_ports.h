#pragma once

#include <cstddef>

namespace tenon::inline ir {

/// Recurrent state of a graph: the positions of an output and of the input that receives its value
/// in the next run.
struct StatePorts {
  std::size_t input = 0, output = 0;
};

}  // namespace tenon::inline ir
