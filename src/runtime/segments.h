#pragma once

#include "program/program.h"

#include <cstdint>
#include <vector>

namespace tenon::inline runtime {

/// A maximal run of kernel steps. All arguments of its calls are known when it starts.
struct Segment {
  /// Range of steps.
  std::uint32_t begin = 0, end = 0;
  /// Buffers shared with steps outside the segment.
  std::vector<std::uint32_t> reads, writes;
  /// Slots that the segment defines.
  std::vector<std::uint32_t> slots;
  /// Symbols on which the segment depends.
  std::vector<std::uint32_t> symbols;
};

/// Returns the segments of a program in order. A kernel-only program is one segment, which reads
/// the inputs and writes the outputs, in their order.
std::vector<Segment> segments_of(const Program& program);

}  // namespace tenon::inline runtime
