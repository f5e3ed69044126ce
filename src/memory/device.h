#pragma once

#include "memory/problem.h"

#include <string_view>

namespace tenon::memory {

/// Machine model for planning. It allows plans for machines that are not present.
struct DeviceSpec {
  std::string name = "a GPU of 15 Tflop/s";
  double flops_per_s = 15e12;
  double bytes_per_s = 0.75e12;
  /// 0: unspecified.
  std::uint64_t memory_bytes = 0;
  /// Link to host memory.
  std::optional<Link> link;

  /// Roofline time: the larger of arithmetic time and memory time.
  double seconds(double flops, double bytes) const;
};

/// Parses a JSON object with the fields above and "link": {"name", "bytes_per_s", "latency_s"}.
/// Throws Error with the field that is missing, unknown or out of range.
DeviceSpec parse_device(std::string_view text, std::string_view source);

}  // namespace tenon::memory
