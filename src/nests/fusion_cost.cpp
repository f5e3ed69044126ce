#include "nests/fusion_cost.h"

#include <algorithm>
#include <cmath>

namespace tenon::nests {
namespace {

// Values between so large are short of memory: each byte more counts so often.
constexpr double kLargeBytes = 64 << 20, kLargeShare = 4;
// With fewer rows than registers hold, loads are in the way: this part of the time for each.
constexpr double kLoadShare = 0.4;

}  // namespace

void FusionCost::count_rows(double rows, double whole_rows, double product_flops) {
  const double best = std::min(prices.tile_rows, whole_rows);
  if (rows < best) again_flops += product_flops * kLoadShare * (best / std::max(1.0, rows) - 1);
}

double FusionCost::gain() const {
  if (local_bytes > prices.local_bytes) return -1;
  const double near = local_bytes + weight_bytes;
  const double share = near <= prices.close_bytes    ? prices.close_share
                       : near <= prices.shared_bytes ? prices.shared_share
                                                     : 1;
  const double reading = (passes - 1) * weight_bytes * share;
  // With few passes some threads wait while others do two, or one does all.
  const double idle = std::ceil(sure_passes / prices.threads) / (sure_passes / prices.threads) - 1;
  const double waiting = std::max(flops / prices.flops_per_byte, weight_bytes) * idle;
  const double spared =
      handed_bytes + (kLargeShare - 1) * std::max(0.0, handed_bytes - kLargeBytes);
  return 2 * spared + kernels * prices.kernel_bytes - again_flops / prices.flops_per_byte -
         again_bytes * prices.close_share - line_bytes - reading - waiting;
}

}  // namespace tenon::nests
