#pragma once

#include "memory/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::distributed {

/// Cluster model for data-parallel training: the device of a rank and the links between ranks.
struct Cluster {
  /// Link that joins groups of this many ranks; the next tier joins such groups.
  struct Tier {
    std::string name;
    std::int64_t ranks = 1;
    /// of one rank, in one direction
    double bytes_per_s = 0, latency_s = 0;
  };
  std::string name;
  /// total number
  std::int64_t ranks = 1;
  memory::DeviceSpec device;
  /// launch overhead of a kernel
  double start_s = 0;
  /// Hierarchical all-reduce, tier by tier, as in NCCL; otherwise every rank exchanges with every
  /// other, as in Tenon's sums in rank order.
  bool is_hierarchical = false;
  /// innermost first
  std::vector<Tier> tiers;
  /// For ranks that share the cores of one machine: the number that compute at the same time;
  /// communication uses the same cores. 0: every rank has its own cores and communication is free
  /// of them.
  double ranks_at_once = 0;

  /// Cost of one exchange of pieces of `bytes` between all ranks: half of an all-reduce.
  struct Exchange {
    double seconds = 0;
    /// bytes that a rank sends, by tier
    std::vector<double> bytes;
  };
  Exchange exchange(std::int64_t rank_count, double bytes) const;
};

/// Parses a JSON description, as in examples/clusters. Throws Error (Usage) with the field that is
/// missing, unknown or out of range.
Cluster parse_cluster(std::string_view text, std::string_view source);

}  // namespace tenon::distributed
