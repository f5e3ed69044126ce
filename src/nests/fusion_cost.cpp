#include "nests/fusion_cost.h"

#include <algorithm>
#include <cmath>

namespace tenon::nests {
namespace {

// Intermediate values above this size put pressure on memory: each further byte counts several
// times.
constexpr double kLargeBytes = 64 << 20, kLargeShare = 4;
// With fewer rows than the register tile, loads limit throughput: share of time lost per missing
// row.
constexpr double kLoadShare = 0.4;

}  // namespace

void FusionCost::count_rows(double rows, double whole_rows, double contraction_flops) {
  const double best = std::min(prices.tile_rows, whole_rows);
  if (rows < best) again_flops += contraction_flops * kLoadShare * (best / std::max(1.0, rows) - 1);
}

double FusionCost::gain() const {
  if (local_bytes > prices.local_bytes) return -1;
  const double near = local_bytes + weight_bytes;
  const double share = near <= prices.close_bytes    ? prices.close_share
                       : near <= prices.shared_bytes ? prices.shared_share
                                                     : 1;
  const double reading = (passes - 1) * weight_bytes * share;
  // Load imbalance: with few iterations some threads idle.
  const double idle = std::ceil(sure_passes / prices.threads) / (sure_passes / prices.threads) - 1;
  const double waiting = std::max(flops / prices.machine_balance, weight_bytes) * idle;
  const double spared =
      handed_bytes + (kLargeShare - 1) * std::max(0.0, handed_bytes - kLargeBytes);
  return 2 * spared + kernels * prices.kernel_bytes - again_flops / prices.machine_balance -
         again_bytes * prices.close_share - line_bytes - reading - waiting;
}

}  // namespace tenon::nests
