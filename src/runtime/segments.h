#pragma once

#include "program/program.h"

#include <cstdint>
#include <vector>

namespace tenon {

/// Kernels one behind another with nothing else between them. All that their calls are made of is
/// known when the first of them begins.
struct Segment {
  /// steps
  std::uint32_t begin = 0, end = 0;
  /// buffers that it shares with what is outside of it
  std::vector<std::uint32_t> reads, writes;
  /// among those it uses: that it writes first
  std::vector<std::uint32_t> slots;
  /// that decide anything about it
  std::vector<std::uint32_t> symbols;
};

/// The segments of a program, in the order of its steps. One of kernels alone is a single one,
/// which reads the inputs and writes the outputs, in their order.
std::vector<Segment> segments_of(const Program& program);

}  // namespace tenon
