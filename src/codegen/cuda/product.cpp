#include "codegen/cuda/product.h"

#include "codegen/cuda/distance.h"
#include "codegen/cuda/matrix_product.h"
#include "codegen/cuda/sum_store.h"
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

std::optional<nests::Contraction> find_tile_sum(const LoopNest& nest) {
  if (auto sum = nests::find_contraction(nest)) return sum;
  return nests::find_integer_contraction(nest.body);
}

bool take_store(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                const Target& target, ProductTile& tile) {
  if (!starts_from_zero((*sum.inner)[0]) || !reads_inside(store.value)) return false;
  tile.dtype = nest.buffers[sum.a->id].dtype;
  tile.b_dtype = nest.buffers[sum.b->id].dtype;
  tile.result_dtype = nest.buffers[store.id].dtype;
  tile.sum = (*sum.inner)[0].id;
  tile.store = store;
  if (tile.has_bytes()) {
    if (!target.multiplies_bytes) return false;
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

std::optional<ProductTile> find_product(const LoopNest& nest, const Target& target) {
  const auto sum = find_tile_sum(nest);
  if (!sum) return std::nullopt;
  const std::optional<Statement> store = only_store(*sum);
  ProductTile tile;
  if (!store || !take_store(nest, *sum, *store, target, tile)) return std::nullopt;
  const MatrixProduct product = matrix_product(*sum, *store);
  if (!product.refusal.empty() || product.is_a_transposed || !(product.batch == Dim(1)))
    return std::nullopt;
  const std::int64_t copied = kCopied / static_cast<std::int64_t>(info(tile.dtype).storage_bytes);
  for (const Dim& dim : {product.k, product.a_leading, product.b_leading}) {
    if (!is_multiple(dim, copied)) return std::nullopt;
  }
  for (const Dim& dim : {product.n, product.y_leading}) {
    if (!is_multiple(dim, kTogether)) return std::nullopt;
  }
  for (const Statement* loop : sum->parallel) {
    if (loop->limit.is_defined()) return std::nullopt;
    if (!(*distance(product.a, loop->id) == Dim(0))) {
      tile.rows.push_back(loop);
    } else if (tile.columns == nullptr) {
      tile.columns = loop;
    } else {
      return std::nullopt;
    }
  }
  if (tile.columns == nullptr) return std::nullopt;
  tile.row_count = product.m;
  if (tile.row_count.is_constant() && tile.row_count.constant() > kMostRows) return std::nullopt;
  tile.column_count = product.n.constant();
  tile.inner_count = product.k.constant();
  tile.a = product.a;
  tile.b = product.b;
  if (product.is_swapped) std::swap(tile.dtype, tile.b_dtype);
  tile.a_pitch = product.a_leading.constant();
  tile.b_pitch = product.b_leading.constant();
  tile.is_b_turned = !product.is_b_transposed;
  // wgmma supports an N-major B only for 16-bit types.
  if (tile.is_b_turned && info(tile.dtype).storage_bytes != 2) return std::nullopt;
  return tile;
}

std::optional<ProductTile> match_product(const LoopNest& nest, const Target& target) {
  if (!target.has_wgmma()) return std::nullopt;
  std::optional<ProductTile> tile = find_product(nest, target);
  if (!tile || tile->has_bytes()) return tile;
  const std::optional<std::int64_t> count = tile_count(*tile).value();
  const std::int64_t units = gpu_facts(target.architecture).units;
  if (target.uses_libraries && count && 4 * *count < kFewestTilesOfFour * units)
    return std::nullopt;
  return tile;
}

bool beats_library(const ProductTile& tile, const Target& target) {
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

Dim tile_count(const ProductTile& tile) {
  return ceil_div(tile.row_count, kProductTile) *
         ceil_div(Dim(tile.column_count), tile.tile_columns());
}

}  // namespace tenon::codegen::cuda
