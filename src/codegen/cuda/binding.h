#pragma once

#include "codegen/cuda/attention_split.h"
#include "codegen/cuda/attention_wgmma.h"
#include "codegen/cuda/convolution.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/select.h"
#include "codegen/cuda/weight_gradient.h"
#include "codegen/nest_names.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// Mapping of a nest's iterations to a grid. The outermost independent loops form the items; a
/// group of threads computes one item, or one thread computes `lanes` neighbouring items.
struct GridBinding {
  /// Item loops, outermost first.
  std::vector<const Statement*> items;
  /// Body of one item.
  const Block* inner = nullptr;
  /// Threads per item: 1, a quarter warp up to a whole warp, or a whole block.
  unsigned group = 1;
  /// Threads per block.
  unsigned threads = 256;
  /// Neighbouring items along the last item loop that one thread computes.
  unsigned lanes = 1;
  /// Scratch buffers live in device memory, one set per group. Smaller scratch lives in shared
  /// memory or registers.
  bool has_global_scratch = false;
  /// Set if the whole nest is attention: a block computes several queries on tensor cores.
  std::optional<AttentionTile> attention;
  /// Set in addition if wgmma computes it.
  std::optional<WgmmaAttention> wgmma_attention;
  /// Set in addition if the blocks of a cluster share the keys.
  std::optional<SplitAttention> split_attention;
  /// Set if the nest is a GEMM whose output tiles blocks compute on tensor cores.
  std::optional<GemmTile> gemm;
  /// Set if the nest is a weight gradient whose partial sums blocks compute on tensor cores.
  std::optional<WeightGradientTile> weight_gradient;

  /// Set if the nest is an implicit-GEMM convolution over TMA tiles.
  std::optional<ConvolutionTile> convolution;
  /// Set if the nest is a GEMM or a convolution on mma.sync fragments.
  std::optional<MmaTile> mma;

  bool uses_tma() const {
    return gemm || weight_gradient || convolution || wgmma_attention || split_attention;
  }
  /// Blocks per cluster; 1 for kernels without clusters.
  unsigned cluster() const;
};

/// The nest must outlive the binding.
GridBinding bind(const LoopNest& nest, const CudaTarget& target);
/// Binds a nest that was selected for tensor cores (`kWgmma`, `kMma`) or for another candidate to
/// exactly that candidate.
GridBinding bind_selected(const LoopNest& nest, const CudaTarget& target,
                          std::string_view candidate);

/// Number of thread blocks to launch, and bytes of device scratch per block.
Dim block_count(const LoopNest& nest, const GridBinding& binding);
Dim scratch_per_block(const LoopNest& nest, const GridBinding& binding);

/// Upper bound on blocks that need device scratch; each block loops over further items.
inline constexpr std::int64_t kMostScratchBlocks = 1056;

/// True for a loop whose iterations are independent, without a limit.
bool is_free(const Statement& statement);

/// A perfect band of loops of one kind, and the body of the innermost.
struct LoopBand {
  std::vector<const Statement*> loops;
  const Block* inner = nullptr;
};
LoopBand band_of(const Statement& loop);
/// True if the band contains only reductions into locals.
bool is_fold_band(const LoopBand& band);

}  // namespace tenon::codegen::cuda
