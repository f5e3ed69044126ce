#pragma once

#include "memory/problem.h"

#include <string_view>

namespace tenon::memory {

/// What a machine can do, as far as planning asks: enough to study a plan for one that is not here.
struct Device {
  std::string name = "a GPU of 15 Tflop/s";
  double flops_per_s = 15e12;
  double bytes_per_s = 0.75e12;
  /// 0: not said
  std::uint64_t memory_bytes = 0;
  /// to the host's memory
  std::optional<Link> link;

  /// The time of work that is limited by arithmetic or by memory, whichever is slower.
  double seconds(double flops, double bytes) const;
};

/// Reads a description: a JSON object with the fields above and "link": {"name", "bytes_per_s",
/// "latency_s"}. Throws Error with the field that is missing, unknown or out of range.
Device parse_device(std::string_view text, std::string_view source);

}  // namespace tenon::memory
