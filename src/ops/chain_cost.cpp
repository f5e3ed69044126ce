#include "ops/chain_cost.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

// What a thread keeps close: the pieces, and with them what every pass reads again. More than that is
// found in the cache that threads share.
constexpr double kLocalBytes = 384 * 1024, kCloseBytes = 768 * 1024, kSharedBytes = 8 << 20;
// Reading again from there costs a fraction of reading from memory.
constexpr double kCloseShare = 0.125, kSharedShare = 0.3;
// Values between so large are short of memory: each byte more counts so often.
constexpr double kLargeBytes = 64 << 20, kLargeShare = 4;
// Rows of a tile in registers. With fewer, loads are in the way: this part of the time for each.
constexpr double kTileRows = 6, kLoadShare = 0.4;
// Threads among which passes should come out even.
constexpr double kThreads = 4;

}  // namespace

bool is_little_work(double flops, double bytes) {
  return std::max(flops / kFlopsPerByte, bytes) <= kForkBytes;
}

void ChainCost::count_rows(double rows, double whole_rows, double product_flops) {
  const double best = std::min(kTileRows, whole_rows);
  if (rows < best) again_flops += product_flops * kLoadShare * (best / std::max(1.0, rows) - 1);
}

double ChainCost::gain() const {
  if (local_bytes > kLocalBytes) return -1;
  const double near = local_bytes + weight_bytes;
  const double share = near <= kCloseBytes ? kCloseShare : near <= kSharedBytes ? kSharedShare : 1;
  const double reading = (passes - 1) * weight_bytes * share;
  // With few passes some threads wait while others do two, or one does all.
  const double idle = std::ceil(sure_passes / kThreads) / (sure_passes / kThreads) - 1;
  const double waiting = std::max(flops / kFlopsPerByte, weight_bytes) * idle;
  const double spared = handed_bytes + (kLargeShare - 1) * std::max(0.0, handed_bytes - kLargeBytes);
  return 2 * spared + kernels * kKernelBytes - again_flops / kFlopsPerByte -
         again_bytes * kCloseShare - reading - waiting;
}

}  // namespace tenon
