#pragma once

#include "codegen/cuda/attention.h"
#include "codegen/cuda/convolution.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/product.h"
#include "codegen/cuda/select.h"
#include "codegen/cuda/weight_gradient.h"
#include "codegen/nest_names.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// How the positions of a nest are spread over a device. The outermost independent loops are its
/// items; a group of threads does one item, or one thread does `lanes` neighbouring ones.
struct Binding {
  /// loops, outermost first
  std::vector<const Statement*> items;
  /// what is done for each
  const Block* inner = nullptr;
  /// Threads that do one item: 1, a quarter of a warp to all of it, or a whole block.
  unsigned group = 1;
  /// of a block
  unsigned threads = 256;
  /// neighbours along the last of `items` that one thread does
  unsigned lanes = 1;
  /// Buffers of the nest's own that lie in the memory of the device, one for each group; others are
  /// small enough for shared memory or registers.
  bool has_global_scratch = false;
  /// The whole nest is attention, which a block computes for several queries on tensor cores.
  std::optional<AttentionTile> attention;
  /// … or a product, of which blocks compute tiles on tensor cores.
  std::optional<ProductTile> product;
  /// … or a gradient by weights, of which they sum pieces there.
  std::optional<WeightGradientTile> weight_gradient;

  /// … or a convolution over few pixels.
  std::optional<ConvolutionTile> convolution;
  /// … or a product or a convolution of fragments.
  std::optional<MmaTile> mma;

  bool reads_boxes() const { return product || weight_gradient || convolution; }
};

/// The nest must outlive the binding.
Binding bind(const LoopNest& nest, const Target& target);
/// … of a nest that was selected for tensor cores (`kWgmma`, `kMma`), or for anything else: it is
/// bound as that.
Binding bind_selected(const LoopNest& nest, const Target& target, std::string_view candidate);

/// Blocks of threads to launch, and bytes of device memory for each of them.
Dim block_count(const LoopNest& nest, const Binding& binding);
Dim scratch_per_block(const LoopNest& nest, const Binding& binding);

/// Blocks at most where each needs memory of its own; they go on with the next items.
inline constexpr std::int64_t kMostScratchBlocks = 1056;

/// Whether a loop's turns may run in any order, all of them.
bool is_free(const Statement& statement);

/// A band of loops of one kind, each all that the one around it does; what stands in the
/// innermost.
struct LoopBand {
  std::vector<const Statement*> loops;
  const Block* inner = nullptr;
};
LoopBand band_of(const Statement& loop);
/// Whether the band only folds into locals.
bool is_fold_band(const LoopBand& band);

}  // namespace tenon::codegen::cuda
