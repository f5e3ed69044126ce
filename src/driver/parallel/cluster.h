#pragma once

#include "memory/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Machines to train on, as data: what a rank computes with and what joins the ranks.
struct Cluster {
  /// Joins groups of so many ranks; the next one joins such groups.
  struct Tier {
    std::string name;
    std::int64_t ranks = 1;
    /// of one rank, in one direction
    double bytes_per_s = 0, latency_s = 0;
  };
  std::string name;
  /// as many as there are
  std::int64_t ranks = 1;
  memory::Device device;
  /// what a kernel takes before it begins
  double start_s = 0;
  /// Whether sums are made group by group, as NCCL does, or every rank exchanges with every other,
  /// as Tenon's sums in rank order do.
  bool is_hierarchical = false;
  /// the innermost first
  std::vector<Tier> tiers;
  /// Of ranks that share the cores of one machine, how many compute at the same time; what carries
  /// their messages then takes the same cores. 0: every rank has its own, and messages too.
  double ranks_at_once = 0;

  /// What all ranks exchanging pieces of `bytes` takes, once: half of an all_reduce.
  struct Exchange {
    double seconds = 0;
    /// that a rank sends, by tier
    std::vector<double> bytes;
  };
  Exchange exchange(std::int64_t rank_count, double bytes) const;
};

/// Reads a description in JSON, as examples/clusters has them. Throws Error (Usage) with the field
/// that is missing, unknown or out of range.
Cluster parse_cluster(std::string_view text, std::string_view source);

}  // namespace tenon
