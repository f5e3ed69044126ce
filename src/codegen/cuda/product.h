#pragma once

#include "codegen/cuda/select.h"
#include "nests/contraction.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// A nest that multiplies two matrices of numbers that tensor cores take (narrow floats, f32 that
/// may drop digits, bytes), and stores, for each element, whatever is computed of its sum. One
/// kernel does it on tensor cores: what follows the sums of one tile is computed while those of the
/// next are summed. Points into the nest, but for the store.
struct ProductTile {
  /// loops that run as one, outermost first
  std::vector<const Statement*> rows;
  const Statement* columns = nullptr;
  Dim row_count;
  std::int64_t column_count = 0, inner_count = 0;
  /// of the matrices
  DType dtype = DType::F16, b_dtype = DType::F16;
  DType result_dtype = DType::F16;
  /// loads
  Scalar a, b;
  /// elements from one row to the next
  std::int64_t a_pitch = 0, b_pitch = 0;
  /// its columns lie side by side, not what is summed over
  bool is_b_turned = false;
  /// the local that holds the sum
  std::size_t sum = 0;
  /// its value told from the sum alone
  Statement store;

  bool has_bytes() const { return is_integer(dtype); }
  /// What follows sums of bytes takes longer than they do: none is computed beyond the edge.
  std::int64_t tile_columns() const { return has_bytes() && column_count <= 64 ? 64 : 128; }
};

/// The sum of products that tensor cores would compute: of floats, or of bytes in i32.
std::optional<nests::Contraction> find_tile_sum(const LoopNest& nest);

/// What becomes of a sum of such products, and its type; false where that is more than numbers of
/// each element or of another type.
bool take_store(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                const Target& target, ProductTile& tile);

/// A product whose operands can be copied in pieces of 16 bytes, whatever instructions there are.
/// What is summed over has to lie side by side in both, but for numbers of two bytes.
std::optional<ProductTile> find_product(const LoopNest& nest, const Target& target);

/// Nothing where the nest is anything else, the target has no such instructions, or there are too
/// few tiles for its multiprocessors and a library does better.
std::optional<ProductTile> match_product(const LoopNest& nest, const Target& target);

/// Rows of a tile, and most columns; so many bytes of a row lie in shared memory at once, so many
/// times.
inline constexpr std::int64_t kProductTile = 128, kTileBytes = 128, kProductStages = 6;
/// Neighbours that a thread reads and stores at once.
inline constexpr std::int64_t kTogether = 8;
/// A kernel counts rows in 32 bits.
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
/// … so many numbers of the sum.
inline std::int64_t tile_depth(DType dtype) {
  return kTileBytes / static_cast<std::int64_t>(info(dtype).storage_bytes);
}
/// One group of 128 threads loads, two pairs of groups take turns at summing and storing.
inline constexpr unsigned kProductThreads = 640;
/// Stages, and what is left out so that they begin at a multiple of 1024.
inline constexpr std::uint32_t kProductSharedBytes =
    kProductStages * 2 * kProductTile * kTileBytes + 1024;

/// Whether it is thought to be faster than a library that does all of it, too: of a matrix that is
/// added to a few tiles for each multiprocessor, libraries know better ways than they choose.
bool beats_library(const ProductTile& tile, const Target& target);

Dim tile_count(const ProductTile& tile);

/// CUDA C++ that kernels of products call.
std::string_view product_template();

}  // namespace tenon::codegen::cuda
