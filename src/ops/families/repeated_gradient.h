#pragma once

#include "ops/definition/gradient.h"

#include <cstdint>
#include <vector>

namespace tenon::inline ops {

/// Loop structure of a node. The body takes `leading` inputs that the node generates, the carried
/// values, one step of each scanned input, then the captured values; it returns `leading_outputs`
/// for the node's control, the carried values, then the stacked outputs.
struct Repetition {
  struct Stacked {
    std::int64_t axis = 0;
    /// The first iteration is at the last position.
    bool is_reversed = false;
  };
  std::vector<Type> leading = {};
  std::size_t leading_outputs = 0;
  /// First carried value among the node's operands.
  std::size_t first_operand = 0;
  std::size_t carried = 0;
  std::vector<Stacked> inputs = {}, outputs = {};
};

/// Backpropagation through `loop` and `scan`: a reverse scan over the stored values of the forward
/// iterations. The node is replaced by one with an additional result per value that the gradient
/// reads.
void add_repeated_gradient(const Repetition& repetition, Gradient& op);

}  // namespace tenon::inline ops
