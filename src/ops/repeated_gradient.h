#pragma once

#include "ops/gradient.h"

#include <cstdint>
#include <vector>

namespace tenon {

/// How a node runs its body again and again: the body takes `leading` inputs that the node makes
/// itself, the carried values, one step of each scanned input, then what it captures; it gives
/// `leading_outputs` that the node reads itself, the carried values, then what is stacked.
struct Repetition {
  struct Stacked {
    std::int64_t axis = 0;
    /// the first run is at the last position
    bool is_reversed = false;
  };
  std::vector<Type> leading = {};
  std::size_t leading_outputs = 0;
  /// of the carried values, among the node's operands
  std::size_t first_operand = 0;
  std::size_t carried = 0;
  std::vector<Stacked> inputs = {}, outputs = {};
};

/// The gradient of `loop` and `scan`: a scan that runs backwards over what the runs forwards leave.
/// A node with further results, one for each value that the gradient reads, takes the node's place.
void add_repeated_gradient(const Repetition& repetition, Gradient& op);

}  // namespace tenon
