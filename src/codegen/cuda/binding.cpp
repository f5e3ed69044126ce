#include "codegen/cuda/binding.h"

#include "nests/index_map.h"
#include "nests/stride.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tenon::codegen::cuda {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kRowThreads = 128;  // threads per block if each group computes one row
// Enough blocks to keep every multiprocessor busy; with more rows each block loops over several.
constexpr std::int64_t kMostRowBlocks = 1 << 13;
// Assumed trip count of a symbolic extent.
constexpr double kUnknownExtent = 64;
constexpr std::int64_t kPackBytes = 16;
// Static shared memory limit of a kernel, minus a reserve.
constexpr std::int64_t kSharedBytes = 40 << 10;
constexpr std::int64_t kRegisterBytes = 256;

double trips(const Dim& extent) {
  return extent.is_constant() ? static_cast<double>(extent.constant()) : kUnknownExtent;
}

double inner_trips(const Block& block) {
  double most = 0;
  for (const Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    most = std::max(most, trips(statement.extent) * std::max(1.0, inner_trips(statement.body)));
  }
  return most;
}

// True if several threads can execute the statements together: independent loops, reductions, and
// straight-line code between them. Statements with an order of their own run on one thread.
bool can_be_shared(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](const Statement& statement) {
    if (statement.kind == Statement::Kind::Update || statement.kind == Statement::Kind::Fold)
      return false;
    if (statement.kind != Statement::Kind::Loop) return true;
    return !statement.limit.is_defined() &&
           (statement.is_independent || is_fold_band(band_of(statement)));
  });
}

bool has_loops(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop;
  });
}

void for_each_statement(const Block& block, const auto& visit) {
  for (const Statement& statement : block) {
    visit(statement);
    for_each_statement(statement.body, visit);
  }
}

struct Reads {
  double scattered = 0, neighbours = 0;
};

// Counts executed loads by the distance between elements that neighbouring iterations read.
void count_reads(const Block& block, std::size_t loop, double times, Reads& reads) {
  for (const Statement& statement : block) {
    Statement alone = statement;
    alone.body.clear();
    nests::for_each_load({alone}, [&](const Scalar& load) {
      if (stride_along(load, loop) == nests::Stride::Other) reads.scattered += times;
      if (stride_along(load, loop) == nests::Stride::Unit) reads.neighbours += times;
    });
    if (statement.kind == Statement::Kind::Loop)
      count_reads(statement.body, loop, times * trips(statement.extent), reads);
  }
}

// True if neighbouring threads mostly read neighbouring elements (coalesced) when each takes one
// iteration. Loads that are uniform across threads do not count.
bool is_coalesced(const Block& block, std::size_t loop) {
  Reads reads;
  count_reads(block, loop, 1, reads);
  return reads.scattered <= reads.neighbours / 2;
}

// Number of neighbouring elements that fit in one vector access of every contiguous buffer.
unsigned widest_lanes(const LoopNest& nest, const GridBinding& binding) {
  if (binding.items.empty()) return 1;
  const Statement& last = *binding.items.back();
  if (!last.extent.is_constant()) return 1;
  std::size_t widest = 1;
  bool is_writing = false, suits = true;
  const auto note = [&](std::size_t buffer) {
    widest = std::max(widest, info(nest.buffers[buffer].dtype).storage_bytes);
  };
  for_each_statement(*binding.inner, [&](const Statement& statement) {
    suits &= !statement.place.is_defined() && statement.kind != Statement::Kind::Update;
    if (statement.kind == Statement::Kind::Store) {
      is_writing = true;
      suits &=
          nests::stride_along(statement.indices, statement.view, last.id) == nests::Stride::Unit;
      note(statement.id);
    }
    if (statement.kind == Statement::Kind::Loop)
      suits &= !statement.limit.is_defined() || !nests::depends_on(statement.limit, last.id);
  });
  for_each_load(*binding.inner, [&](const Scalar& load) {
    if (stride_along(load, last.id) == nests::Stride::Unit) note(load->id);
  });
  if (!suits || !is_writing) return 1;
  auto lanes = static_cast<unsigned>(std::min<std::size_t>(8, kPackBytes / widest));
  while (lanes > 1 && last.extent.constant() % lanes != 0) lanes /= 2;
  return lanes;
}

// Number of neighbouring items per thread. With fewer items than threads on the device, parallelism
// is worth more than vector accesses; of an unknown number there may be few, which long reductions
// would keep busy for too long.
unsigned lanes_of(const LoopNest& nest, const GridBinding& binding) {
  constexpr double kMostWork = 512;
  unsigned lanes = widest_lanes(nest, binding);
  double count = 1;
  bool is_known = true;
  for (const Statement* loop : binding.items) {
    count *= trips(loop->extent);
    is_known &= loop->extent.is_constant();
  }
  const double inside = inner_trips(*binding.inner);
  while (lanes > 1 && (count / lanes < 1 << 15 || (!is_known && inside * lanes > kMostWork)))
    lanes /= 2;
  return lanes;
}

// True for reductions into locals and stores of what follows from them: each thread of a group then
// reduces its share for several neighbouring items.
bool only_folds(const Block& block) {
  return std::ranges::all_of(block, [](const Statement& statement) {
    if (statement.kind == Statement::Kind::Loop) {
      const LoopBand band = band_of(statement);
      return !statement.limit.is_defined() && is_fold_band(band) &&
             std::ranges::none_of(*band.inner,
                                  [](const Statement& fold) { return fold.place.is_defined(); });
    }
    return statement.kind == Statement::Kind::Define || statement.kind == Statement::Kind::Store;
  });
}

std::int64_t own_bytes(const LoopNest& nest) {
  std::int64_t bytes = 0;
  for (const NestBuffer& buffer : nest.buffers) {
    if (buffer.storage != StorageClass::Scratch) continue;
    const Dim size = scratch_size(buffer);
    if (!size.is_constant() || size.constant() > (std::int64_t{1} << 40)) return -1;
    bytes += size.constant();
  }
  return bytes;
}

// Number of threads of a warp per row when there are many rows: enough that each thread handles
// pieces of four elements, and at most a few pieces.
unsigned threads_of_rows(const Block& block, double rows, std::int64_t own) {
  constexpr double kManyRows = 1 << 15;
  constexpr std::int64_t kPiece = 4, kMostPieces = 3;
  std::optional<Dim> row;
  for (const Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    if (row && !(*row == statement.extent)) return kWarp;
    row = statement.extent;
  }
  if (rows < kManyRows || !row || !row->is_constant()) return kWarp;
  for (unsigned threads = kWarp; threads >= kWarp / 4; threads /= 2) {
    const std::int64_t elements = row->constant() / threads;
    if (row->constant() % threads == 0 && elements % kPiece == 0 &&
        elements / kPiece <= kMostPieces && own >= 0 &&
        own * (kRowThreads / threads) <= kSharedBytes)
      return threads;
  }
  return kWarp;
}

}  // namespace

LoopBand band_of(const Statement& loop) {
  LoopBand band{{&loop}, &loop.body};
  while (band.inner->size() == 1 && band.inner->front().kind == Statement::Kind::Loop &&
         band.inner->front().is_independent == loop.is_independent &&
         !band.inner->front().limit.is_defined()) {
    band.loops.push_back(&band.inner->front());
    band.inner = &band.inner->front().body;
  }
  return band;
}

bool is_fold_band(const LoopBand& band) {
  return !band.loops.front()->is_independent &&
         std::all_of(band.inner->begin(), band.inner->end(), [](const Statement& statement) {
           return statement.kind == Statement::Kind::Fold && statement.reduction != Reduction::Last;
         });
}

bool is_free(const Statement& statement) {
  return statement.kind == Statement::Kind::Loop && statement.is_independent &&
         !statement.limit.is_defined();
}

unsigned GridBinding::cluster() const {
  if (convolution) return static_cast<unsigned>(convolution->cluster());
  return split_attention ? static_cast<unsigned>(split_attention->parts) : 1;
}

GridBinding bind(const LoopNest& nest, const CudaTarget& target) {
  GridBinding binding;
  binding.inner = &nest.body;
  binding.attention = match_attention(nest);
  if (binding.attention) {
    binding.wgmma_attention = match_wgmma_attention(*binding.attention, target);
    if (!binding.wgmma_attention)
      binding.split_attention = match_split_attention(*binding.attention, target);
    binding.group = binding.threads = binding.wgmma_attention   ? binding.wgmma_attention->threads()
                                      : binding.split_attention ? kSplitThreads
                                                                : kAttentionThreads;
    return binding;
  }
  binding.gemm = match_gemm_tile(nest, target);
  if (binding.gemm) {
    binding.threads = kProductThreads;
    return binding;
  }
  binding.weight_gradient = match_weight_gradient_tile(nest, target);
  if (binding.weight_gradient) {
    binding.threads = kWeightGradientThreads;
    return binding;
  }
  binding.convolution = match_convolution_tile(nest, target);
  if (binding.convolution) {
    binding.threads = binding.convolution->is_large ? kProductThreads : kConvolutionThreads;
    return binding;
  }
  binding.mma = match_mma(nest, target);
  if (binding.mma) {
    binding.group = binding.threads = kMmaThreads;
    return binding;
  }
  while (binding.inner->size() == 1 && is_free(binding.inner->front())) {
    binding.items.push_back(&binding.inner->front());
    binding.inner = &binding.inner->front().body;
  }
  double items = 1;
  for (const Statement* loop : binding.items) items *= trips(loop->extent);
  const double inside = inner_trips(*binding.inner);
  const std::int64_t own = own_bytes(nest);
  const bool is_coalesced_by_items =
      !binding.items.empty() && is_coalesced(*binding.inner, binding.items.back()->id);
  // With few items, groups also share reductions that one thread would finish soon.
  constexpr double kFewThreads = 1 << 14;
  const bool has_lanes = own == 0 && is_coalesced_by_items && only_folds(*binding.inner);
  const double longest = has_lanes && items < kFewThreads ? kUnknownExtent - 1 : 512;
  const bool is_short =
      inside <= 8 || (is_coalesced_by_items && (inside <= longest || items >= 1 << 16));
  const bool wants_group = !is_short || own > kRegisterBytes || own < 0;
  if (has_loops(*binding.inner) && wants_group && can_be_shared(*binding.inner)) {
    // With few rows, more threads share each row, so that all multiprocessors have work.
    constexpr double kFewItems = 1024;
    const bool is_spread = items < kFewItems && inside > 256;
    binding.group = inside <= 1024 && !is_spread ? threads_of_rows(*binding.inner, items, own)
                    : inside <= 1 << 14          ? 256
                                                 : 1024;
    binding.threads = std::max(binding.group, kRowThreads);
    if (has_lanes) {
      // Positions of a reduction for a warp at least; neighbouring items for the sectors of a read.
      while (binding.group > kWarp && binding.group > inside) binding.group /= 2;
      binding.threads = std::max(binding.group, kRowThreads);
      binding.lanes = widest_lanes(nest, binding);
    }
    const std::int64_t groups = binding.threads / binding.group;
    binding.has_global_scratch = own < 0 || own * groups > kSharedBytes;
    return binding;
  }
  binding.has_global_scratch = own < 0 || own > kRegisterBytes;
  if (binding.items.empty()) {
    binding.threads = 1;
  } else {
    if (own == 0) binding.lanes = lanes_of(nest, binding);
    binding.threads = items / binding.lanes < 1 << 16 ? 128 : 256;
  }
  return binding;
}

GridBinding bind_selected(const LoopNest& nest, const CudaTarget& target,
                          std::string_view candidate) {
  if (!is_on_tensor_cores(candidate)) return bind(nest, target_for(target, false));
  CudaTarget own = target;
  own.prefers_mma_sync = candidate == kMma;
  // First by the target's own preference, then with tensor cores forced.
  GridBinding binding = bind(nest, own);
  return binding.uses_tma() || binding.mma ? binding : bind(nest, target_for(own, true));
}

namespace {

Dim item_count(const GridBinding& binding) {
  Dim count = 1;
  for (const Statement* loop : binding.items) count = count * loop->extent;
  return binding.lanes == 1 ? count : ceil_div(count, binding.lanes);
}

}  // namespace

Dim block_count(const LoopNest&, const GridBinding& binding) {
  if (binding.wgmma_attention) return tile_count(*binding.attention, *binding.wgmma_attention);
  if (binding.split_attention) return block_count(*binding.attention, *binding.split_attention);
  if (binding.attention) {
    Dim blocks = ceil_div(query_count(*binding.attention), kAttentionRows);
    for (const Statement* loop : binding.attention->outer) blocks = blocks * loop->extent;
    return blocks;
  }
  if (binding.gemm) return tile_count(*binding.gemm);
  if (binding.mma) return binding.mma->tile_count();
  if (binding.weight_gradient) return unit_count(*binding.weight_gradient);
  if (binding.convolution) return binding.convolution->block_count();
  const Dim blocks = ceil_div(item_count(binding), binding.threads / binding.group);
  if (binding.has_global_scratch) return min(blocks, Dim(kMostScratchBlocks));
  const bool has_short_items = binding.group > 1 && binding.group <= kWarp;
  return has_short_items ? min(blocks, Dim(kMostRowBlocks)) : blocks;
}

Dim scratch_per_block(const LoopNest& nest, const GridBinding& binding) {
  if (!binding.has_global_scratch) return 0;
  return scratch_bytes(nest) * Dim(binding.threads / binding.group);
}

}  // namespace tenon::codegen::cuda
