#include "codegen/cuda/product.h"

#include "codegen/cuda/distance.h"
#include "codegen/cuda/matrix_product.h"
#include "codegen/cuda/sum_store.h"
#include "nests/index_map.h"
#include "nests/scalar_walk.h"
#include "target/gpu_facts.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kCopied = 8;  // narrow numbers in 16 bytes, in which tiles are copied
// With fewer than so many for four multiprocessors a library, which has smaller ones too, is
// faster, what follows included.
constexpr std::int64_t kFewestTilesOfFour = 3;

bool is_even(const Dim& dim) {
  return dim.is_constant() && dim.constant() > 0 && dim.constant() % kCopied == 0;
}

// A library adds its bias in f32 and rounds once: so do we. What is rounded in between to the type
// of the result is not.
Scalar without_rounding(const Scalar& scalar, DType narrow) {
  if (scalar->kind == ScalarKind::Load || scalar->args.empty()) return scalar;
  if (scalar->kind == ScalarKind::Cast && scalar->dtype == narrow &&
      is_float(scalar->args[0]->dtype))
    return without_rounding(scalar->args[0], narrow);
  ScalarNode node = scalar.node();
  for (Scalar& arg : node.args) arg = without_rounding(arg, narrow);
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

// What is computed of a sum alone: of numbers that are read nothing is checked or looked up.
bool is_plain(const Scalar& value) {
  return !nests::any_node(value, [](const ScalarNode& node) {
    return node.kind == ScalarKind::Load && node.bounds != Bounds::Inside;
  });
}

}  // namespace

bool take_store(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                ProductTile& tile) {
  if (!starts_from_zero((*sum.inner)[0]) || !is_plain(store.value)) return false;
  tile.dtype = nest.buffers[sum.a->id].dtype;
  if (tile.dtype != DType::F16 && tile.dtype != DType::BF16) return false;
  if (nest.buffers[sum.b->id].dtype != tile.dtype || nest.buffers[store.id].dtype != tile.dtype)
    return false;
  tile.sum = (*sum.inner)[0].id;
  tile.store = store;
  tile.store.value = without_rounding(store.value, tile.dtype);
  return true;
}

std::optional<ProductTile> match_product(const LoopNest& nest, const Target& target) {
  if (!target.has_wgmma()) return std::nullopt;
  const auto sum = nests::find_contraction(nest);
  if (!sum) return std::nullopt;
  const std::optional<Statement> store = only_store(*sum);
  ProductTile tile;
  if (!store || !take_store(nest, *sum, *store, tile)) return std::nullopt;
  const MatrixProduct product = matrix_product(*sum, *store);
  if (!product.refusal.empty() || product.is_a_transposed || !(product.batch == Dim(1)))
    return std::nullopt;
  for (const Dim& dim :
       {product.n, product.k, product.a_leading, product.b_leading, product.y_leading}) {
    if (!is_even(dim)) return std::nullopt;
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
  tile.column_count = product.n.constant();
  tile.inner_count = product.k.constant();
  tile.a = product.a;
  tile.b = product.b;
  tile.a_pitch = product.a_leading.constant();
  tile.b_pitch = product.b_leading.constant();
  tile.is_b_turned = !product.is_b_transposed;
  const std::optional<std::int64_t> count = tile_count(tile).value();
  const std::int64_t units = gpu_facts(target.architecture).units;
  if (target.uses_libraries && count && 4 * *count < kFewestTilesOfFour * units)
    return std::nullopt;
  return tile;
}

Dim tile_count(const ProductTile& tile) {
  return ceil_div(tile.row_count, kProductTile) *
         Dim((tile.column_count + kProductTile - 1) / kProductTile);
}

}  // namespace tenon::codegen::cuda
