#include "target/fusion_prices.h"

#include <algorithm>

namespace tenon::inline target {

nests::FusionPrices fusion_prices(const TargetFacts& facts) {
  const double memory = facts.memory().bytes_per_s;
  const MemoryLevel &own = facts.private_cache(), &shared = facts.last_level_cache();
  nests::FusionPrices prices;
  prices.fork_bytes = facts.start_s * memory;
  // Apart from waking threads, a kernel starts with caches full of other kernels' data.
  prices.kernel_bytes = 4 * prices.fork_bytes;
  prices.machine_balance = facts.machine_balance;
  // Scratch leaves room for the weights that every tile reads; a shared cache is divided among the
  // threads.
  prices.local_bytes = 0.375 * static_cast<double>(own.bytes);
  prices.close_bytes = 0.75 * static_cast<double>(own.bytes);
  prices.shared_bytes = 0.25 * static_cast<double>(shared.bytes);
  prices.close_share = memory / own.bytes_per_s;
  prices.shared_share = memory / shared.bytes_per_s;
  // Two accumulator vectors per row, two vectors and a broadcast register for the operands. More
  // than six rows gain little.
  prices.tile_rows = std::min(6U, (facts.registers - 3) / 2);
  // A program may run on a machine with more units than this one.
  prices.threads = std::max(4U, facts.units);
  return prices;
}

}  // namespace tenon::inline target
