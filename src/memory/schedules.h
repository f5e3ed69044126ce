#pragma once

#include "memory/problem.h"

#include <cstdint>
#include <vector>

namespace tenon::memory {

/// The items to be put in order, numbered as they stand, with what they make and read.
struct Tasks {
  explicit Tasks(const Problem& problem);
  std::size_t size() const { return makes.size(); }

  struct Held {
    std::int64_t bytes = 0;
    std::uint32_t maker = 0;
    /// once each
    std::vector<std::uint32_t> readers;
    bool is_output = false;
  };
  std::vector<Held> values;
  /// values, by task
  std::vector<std::vector<std::uint32_t>> makes, reads;
  /// tasks, by task; once each
  std::vector<std::vector<std::uint32_t>> needs;
  /// by task: while it runs
  std::vector<std::int64_t> inner_bytes;
};

using Sequence = std::vector<std::uint32_t>;

std::int64_t peak_bytes(const Tasks& tasks, const Sequence& sequence);

/// Of what is ready, what leaves least alive; of equals what was made ready last, so that chains
/// run through.
Sequence least_growth(const Tasks& tasks);
/// The same from the end: of what nobody waits for any more, what asks least of those before it.
Sequence least_growth_backwards(const Tasks& tasks);
/// Depth first from the outputs; of a node's operands first the one that needs most beyond what it
/// leaves.
Sequence deepest_need_first(const Tasks& tasks);

}  // namespace tenon::memory
