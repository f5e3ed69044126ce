#include "codegen/cuda/gemm.h"

#include "codegen/cuda/gemm_match.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/scalar_walk.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kCopied = 16;  // bytes per TMA row granule
// With fewer tiles than this per four multiprocessors a library is faster, even with a separate
// epilogue, because it also has smaller tiles.
constexpr std::int64_t kFewestTilesOfFour = 3;
// With more tiles than this per multiprocessor a library is faster at every epilogue that it
// supports. Measured with ResNet-50's layers on an H200.
constexpr std::int64_t kMostTilesOfOne = 4;

bool is_multiple(const Dim& dim, std::int64_t of) {
  return dim.is_constant() && dim.constant() > 0 && dim.constant() % of == 0;
}

// A library adds its bias in f32 and rounds once. Intermediate roundings to the result's type are
// dropped to match.
Scalar without_rounding(const Scalar& scalar, DType narrow) {
  if (scalar->kind == ScalarKind::Load || scalar->args.empty()) return scalar;
  if (scalar->kind == ScalarKind::Cast && scalar->dtype == narrow &&
      is_float(scalar->args[0]->dtype))
    return without_rounding(scalar->args[0], narrow);
  ScalarNode node = scalar.node();
  for (Scalar& arg : node.args) arg = without_rounding(arg, narrow);
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

// True if every load in the epilogue is in bounds by construction.
bool reads_inside(const Scalar& value) {
  return !nests::any_node(value, [](const ScalarNode& node) {
    return node.kind == ScalarKind::Load && node.bounds != Bounds::Inside;
  });
}

}  // namespace

std::optional<nests::Contraction> find_tile_contraction(const LoopNest& nest) {
  if (auto contraction = nests::find_contraction(nest)) return contraction;
  return nests::find_integer_contraction(nest.body);
}

bool take_store(const LoopNest& nest, const nests::Contraction& contraction, const Statement& store,
                const CudaTarget& target, GemmTile& tile) {
  if (!starts_from_zero((*contraction.inner)[0]) || !reads_inside(store.value)) return false;
  tile.dtype = nest.buffers[contraction.a->id].dtype;
  tile.b_dtype = nest.buffers[contraction.b->id].dtype;
  tile.result_dtype = nest.buffers[store.id].dtype;
  tile.sum = (*contraction.inner)[0].id;
  tile.store = store;
  if (tile.has_bytes()) {
    if (!target.has_int8_multiply_add) return false;
    return tile.result_dtype == DType::U8 || tile.result_dtype == DType::I8 ||
           tile.result_dtype == DType::I32 || tile.result_dtype == DType::F32;
  }
  const bool is_narrow = tile.dtype == DType::F16 || tile.dtype == DType::BF16;
  if (!is_narrow && !(tile.dtype == DType::F32 && target.allows_tf32)) return false;
  if (tile.b_dtype != tile.dtype) return false;
  // Fragments can be stored as f32 accumulators too.
  if (is_narrow && tile.result_dtype == DType::F32) return target.has_mma();
  if (tile.result_dtype != tile.dtype) return false;
  if (is_narrow) tile.store.value = without_rounding(store.value, tile.dtype);
  return true;
}

std::optional<GemmTile> find_gemm_tile(const LoopNest& nest, const CudaTarget& target) {
  const auto contraction = find_tile_contraction(nest);
  if (!contraction) return std::nullopt;
  const std::optional<Statement> store = only_store(*contraction);
  GemmTile tile;
  if (!store || !take_store(nest, *contraction, *store, target, tile)) return std::nullopt;
  const GemmMatch gemm = match_gemm(*contraction, *store);
  if (!gemm.refusal.empty() || gemm.is_a_transposed || !(gemm.batch == Dim(1))) return std::nullopt;
  const std::int64_t copied = kCopied / static_cast<std::int64_t>(info(tile.dtype).storage_bytes);
  for (const Dim& dim : {gemm.k, gemm.a_leading, gemm.b_leading}) {
    if (!is_multiple(dim, copied)) return std::nullopt;
  }
  for (const Dim& dim : {gemm.n, gemm.y_leading}) {
    if (!is_multiple(dim, kTogether)) return std::nullopt;
  }
  for (const Statement* loop : contraction->parallel) {
    if (loop->limit.is_defined()) return std::nullopt;
    if (!(*distance(gemm.a, loop->id) == Dim(0))) {
      tile.rows.push_back(loop);
    } else if (tile.columns == nullptr) {
      tile.columns = loop;
    } else {
      return std::nullopt;
    }
  }
  if (tile.columns == nullptr) return std::nullopt;
  tile.row_count = gemm.m;
  if (tile.row_count.is_constant() && tile.row_count.constant() > kMostRows) return std::nullopt;
  tile.column_count = gemm.n.constant();
  tile.inner_count = gemm.k.constant();
  tile.a = gemm.a;
  tile.b = gemm.b;
  if (gemm.is_swapped) std::swap(tile.dtype, tile.b_dtype);
  tile.a_pitch = gemm.a_leading.constant();
  tile.b_pitch = gemm.b_leading.constant();
  tile.is_b_n_major = !gemm.is_b_transposed;
  // wgmma supports an N-major B only for 16-bit types.
  if (tile.is_b_n_major && info(tile.dtype).storage_bytes != 2) return std::nullopt;
  return tile;
}

std::optional<GemmTile> match_gemm_tile(const LoopNest& nest, const CudaTarget& target) {
  if (!target.has_wgmma()) return std::nullopt;
  std::optional<GemmTile> tile = find_gemm_tile(nest, target);
  if (!tile || tile->has_bytes()) return tile;
  const std::optional<std::int64_t> count = tile_count(*tile).value();
  const std::int64_t units = gpu_facts(target.architecture).units;
  if (target.uses_libraries && count && 4 * *count < kFewestTilesOfFour * units)
    return std::nullopt;
  return tile;
}

bool beats_library(const GemmTile& tile, const CudaTarget& target) {
  bool adds_matrix = false;
  nests::for_each_load({tile.store}, [&](const Scalar& load) {
    adds_matrix |= nests::depends_on(load, tile.columns->id) &&
                   std::ranges::any_of(tile.rows, [&](const Statement* row) {
                     return nests::depends_on(load, row->id);
                   });
  });
  const std::optional<std::int64_t> count = tile_count(tile).value();
  return adds_matrix && count && *count <= kMostTilesOfOne * gpu_facts(target.architecture).units;
}

Dim tile_count(const GemmTile& tile) {
  return ceil_div(tile.row_count, kProductTile) *
         ceil_div(Dim(tile.column_count), tile.tile_columns());
}

}  // namespace tenon::codegen::cuda
