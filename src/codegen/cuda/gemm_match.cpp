#include "codegen/cuda/gemm_match.h"

#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::codegen::cuda {
namespace {

// Collapsed loops with their strides in (left, right, result).
struct Side {
  Dim extent = 1;
  std::array<Dim, 3> steps = {0, 0, 0};
};

// Collapses neighbouring loops where the outer stride equals inner stride times inner extent in
// every array.
std::vector<Side> joined(const std::vector<Side>& loops) {
  std::vector<Side> list;
  for (const Side& loop : loops) {
    if (!list.empty()) {
      bool fits = true;
      for (std::size_t k = 0; k < 3; ++k)
        fits &= list.back().steps[k] == loop.steps[k] * loop.extent;
      if (fits) {
        list.back() = {list.back().extent * loop.extent, loop.steps};
        continue;
      }
    }
    list.push_back(loop);
  }
  return list;
}

GemmMatch refused(std::string why) {
  GemmMatch product;
  product.refusal = std::move(why);
  return product;
}

}  // namespace

GemmMatch match_gemm(const nests::Contraction& contraction, const Statement& store) {
  GemmMatch product;
  if (contraction.a->bounds != Bounds::Inside || contraction.b->bounds != Bounds::Inside)
    return refused("operands that are read past their edges");
  if (!starts_at_zero(contraction.a->args, contraction.a->view.size()) ||
      !starts_at_zero(contraction.b->args, contraction.b->view.size()) ||
      !starts_at_zero(store.indices, store.view.size())) {
    return refused("operands that are read from their middle");
  }
  // Dimensions: a has M and K, b has K and N.
  std::vector<Side> rows, columns, batches, inner;
  for (const Statement* loop : contraction.parallel) {
    const auto a = distance(contraction.a, loop->id), b = distance(contraction.b, loop->id),
               y = distance(store, loop->id);
    if (!a || !b || !y || *y == Dim(0)) return refused("elements that do not lie evenly");
    const bool in_a = !(*a == Dim(0)), in_b = !(*b == Dim(0));
    (in_a && in_b ? batches : in_a ? rows : columns).push_back({loop->extent, {*a, *b, *y}});
  }
  for (const Statement* loop : contraction.reduction) {
    const auto a = distance(contraction.a, loop->id), b = distance(contraction.b, loop->id);
    if (!a || !b || *a == Dim(0) || *b == Dim(0))
      return refused("the reduction does not run over both operands");
    inner.push_back({loop->extent, {*a, *b, 0}});
  }
  rows = joined(rows);
  columns = joined(columns);
  batches = joined(batches);
  inner = joined(inner);
  for (auto* sides : {&rows, &columns}) {
    if (sides->size() == 2 && batches.empty()) {
      product.is_split = true;
      batches.push_back(sides->front());
      sides->erase(sides->begin());
    }
  }
  if (rows.size() > 1 || columns.size() > 1 || batches.size() > 1 || inner.size() != 1)
    return refused("axes that are not one matrix");
  Side row = rows.empty() ? Side{} : rows.front(),
       column = columns.empty() ? Side{} : columns.front();
  const Side sum_side = inner.front(), batch = batches.empty() ? Side{} : batches.front();
  bool is_swapped = false;
  if (!(column.steps[2] == Dim(1)) && !columns.empty()) {
    if (!(row.steps[2] == Dim(1))) return refused("a result whose rows are not in one piece");
    is_swapped = true;
  } else if (columns.empty() && !rows.empty()) {
    is_swapped = row.steps[2] == Dim(1);
    if (!is_swapped) return refused("a result whose rows are not in one piece");
  }
  Scalar a = contraction.a, b = contraction.b;
  std::array<std::size_t, 2> at = {0, 1};
  if (is_swapped) {
    std::swap(row, column);
    std::swap(a, b);
    std::swap(at[0], at[1]);
  }
  const Dim m = row.extent, n = column.extent, k = sum_side.extent;
  // Returns the leading dimension and whether the matrix is stored transposed.
  const auto laid = [](const Dim& outer_step, const Dim& outer, const Dim& inner_step,
                       const Dim& inner_extent) -> std::optional<std::pair<Dim, bool>> {
    if (inner_step == Dim(1) || inner_extent == Dim(1)) {
      return std::pair(outer == Dim(1) ? inner_extent : outer_step, false);
    }
    if (outer_step == Dim(1) || outer == Dim(1)) return std::pair(inner_step, true);
    return std::nullopt;
  };
  const auto of_a = laid(row.steps[at[0]], m, sum_side.steps[at[0]], k);     // M by K
  const auto of_b = laid(sum_side.steps[at[1]], k, column.steps[at[1]], n);  // K by N
  if (!of_a || !of_b) return refused("a matrix of which neither rows nor columns are in one piece");
  // Windows that overlap, as in a strided 1-D convolution of one channel, are no matrix.
  const auto overlaps = [](const std::pair<Dim, bool>& matrix, const Dim& rows,
                           const Dim& columns) {
    const Dim& length = matrix.second ? rows : columns;
    return matrix.first.is_constant() && length.is_constant() &&
           matrix.first.constant() < length.constant();
  };
  if (overlaps(*of_a, m, k) || overlaps(*of_b, k, n)) return refused("rows that overlap");
  if (m == Dim(1) && n == Dim(1)) return refused("sums of one row and one column");
  const Dim leading_y = m == Dim(1) ? n : row.steps[2];
  product.batch = batch.extent;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = a;
  product.b = b;
  product.is_swapped = is_swapped;
  product.is_a_transposed = of_a->second;
  product.is_b_transposed = of_b->second;
  product.a_leading = of_a->first;
  product.b_leading = of_b->first;
  product.y_leading = leading_y;
  product.a_step = batch.steps[at[0]];
  product.b_step = batch.steps[at[1]];
  product.y_step = batch.steps[2];
  return product;
}

}  // namespace tenon::codegen::cuda
