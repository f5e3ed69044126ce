#pragma once

#include <cstddef>

namespace tenon {

/// An input that is, in the next run, what an output is in this one: their positions among the
/// graph's.
struct StatePorts {
  std::size_t input = 0, output = 0;
};

}  // namespace tenon
