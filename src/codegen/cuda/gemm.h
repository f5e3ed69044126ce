#pragma once

#include "codegen/cuda/select.h"
#include "nests/contraction.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// A GEMM on tensor cores (16-bit floats, tf32 from f32, bytes) with fused epilogue: one persistent
/// kernel with ping-pong warpgroups, where the epilogue of one tile overlaps the accumulation of
/// the next. Points into the nest, except for `store`.
struct GemmTile {
  /// Loops collapsed into M, outermost first.
  std::vector<const Statement*> rows;
  const Statement* columns = nullptr;
  Dim row_count;
  std::int64_t column_count = 0, inner_count = 0;
  /// Element types of the operands.
  DType dtype = DType::F16, b_dtype = DType::F16;
  DType result_dtype = DType::F16;
  /// Loads of the operands.
  Scalar a, b;
  /// Row pitch of the operands, in elements.
  std::int64_t a_pitch = 0, b_pitch = 0;
  /// True if B is contiguous along N instead of K.
  bool is_b_n_major = false;
  /// Local that holds the sum.
  std::size_t sum = 0;
  /// The epilogue: its value is an expression of the sum alone.
  Statement store;

  bool has_bytes() const { return is_integer(dtype); }
  /// The epilogue of byte products costs more than the products: narrow results use narrow tiles.
  std::int64_t tile_columns() const { return has_bytes() && column_count <= 64 ? 64 : 128; }
};

/// Returns the contraction that tensor cores would compute: of floats, or of bytes into i32.
std::optional<nests::Contraction> find_tile_contraction(const LoopNest& nest);

/// Fills the epilogue and result type of a tile. Returns false if the epilogue is not elementwise
/// or the result type is not supported.
bool take_store(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                const CudaTarget& target, GemmTile& tile);

/// Matches a GEMM whose operands can be copied in 16-byte pieces, independent of available
/// instructions. Both operands must be contiguous along K, except 16-bit types.
std::optional<GemmTile> find_gemm_tile(const LoopNest& nest, const CudaTarget& target);

/// Returns nullopt if the nest does not match, the target lacks wgmma, or there are too few tiles
/// to fill its multiprocessors and a library is faster.
std::optional<GemmTile> match_gemm_tile(const LoopNest& nest, const CudaTarget& target);

/// Rows (and maximum columns) of a tile; bytes per row of one pipeline stage; number of stages.
inline constexpr std::int64_t kProductTile = 128, kTileBytes = 128, kProductStages = 6;
/// Elements per vector access of the epilogue.
inline constexpr std::int64_t kTogether = 8;
/// Kernels count rows in 32 bits.
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
/// Elements of K per pipeline stage.
inline std::int64_t tile_depth(DType dtype) {
  return kTileBytes / static_cast<std::int64_t>(info(dtype).storage_bytes);
}
/// One TMA producer warpgroup and two ping-pong pairs of consumer warpgroups.
inline constexpr unsigned kProductThreads = 640;
/// Pipeline stages, plus slack to align the first stage to 1024 bytes.
inline constexpr std::uint32_t kProductSharedBytes =
    kProductStages * 2 * kProductTile * kTileBytes + 1024;

/// Estimates whether this kernel beats a library that supports the whole nest. With an added matrix
/// and few tiles per multiprocessor, libraries have better kernels than their heuristics choose.
bool beats_library(const GemmTile& tile, const CudaTarget& target);

Dim tile_count(const GemmTile& tile);

/// CUDA C++ functions that GEMM kernels call.
std::string_view gemm_template();

}  // namespace tenon::codegen::cuda
