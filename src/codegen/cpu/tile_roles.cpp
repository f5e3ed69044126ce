#include "codegen/cpu/tile_roles.h"

#include "codegen/cpu/row_blocks.h"
#include "expr/access.h"
#include "nests/stride.h"

#include <algorithm>
#include <limits>

namespace tenon::codegen::cpu {

using nests::Stride;

std::optional<std::int64_t> distance_along(const Scalar& load, std::size_t loop) {
  std::int64_t distance = 0;
  std::optional<std::int64_t> stride = 1;
  for (std::size_t axis = load->view.size(); axis-- > 0;) {
    const auto step = growth(load->args[axis], loop);
    if (!step || (*step != 0 && !stride)) return std::nullopt;
    if (*step != 0) distance += *step * *stride;
    const std::optional<std::int64_t> extent = load->view[axis].value();
    stride = stride && extent ? std::optional(*stride * *extent) : std::nullopt;
  }
  return distance;
}

std::vector<const Statement*> sort_by_stride(std::vector<const Statement*> loops,
                                             const Scalar& load) {
  const auto distance = [&](const Statement* loop) {
    return std::abs(
        distance_along(load, loop->id).value_or(std::numeric_limits<std::int64_t>::max()));
  };
  std::stable_sort(loops.begin(), loops.end(), [&](const Statement* x, const Statement* y) {
    return distance(x) > distance(y);
  });
  return loops;
}

TileRoles find_roles(const Block& body, const std::vector<bool>& may_pack) {
  TileRoles roles;
  std::optional<Contraction> found = find_contraction(body);
  if (!found) {
    roles.refusal = "not a contraction of two f32, f16 or bf16 operands";
    return roles;
  }
  Contraction& c = roles.contraction = std::move(*found);
  // Columns: b and the result vary along them; a does not (or does too, as in depthwise
  // convolutions).
  int best = 0;
  bool is_swapped = false;
  roles.refusal = "it writes along no loop of 4 or more";
  for (const Statement* loop : c.parallel) {
    const bool is_number = loop->extent.is_constant();
    if ((is_number && loop->extent.constant() < 4) || loop->limit.is_defined()) continue;
    if (!suits_columns(c, loop->id)) continue;
    for (const bool swaps : {false, true}) {
      const Scalar& a = swaps ? c.b : c.a;
      const Scalar& b = swaps ? c.a : c.b;
      const Stride of_a = stride_along(a, loop->id), of_b = stride_along(b, loop->id);
      const bool packs = may_pack[b->id] && can_be_repacked(b);
      if (of_b == Stride::Zero || (of_b == Stride::Other && !packs) || of_a == Stride::Other) {
        if (best == 0) {
          roles.refusal =
              "no operand is contiguous along the result's columns, or constant and packable";
        }
        continue;
      }
      const int score = (of_a == Stride::Zero ? 8 : 2) + (packs ? 2 : 0) + (is_number ? 1 : 0);
      if (score > best) {
        best = score;
        roles.columns = loop;
        is_swapped = swaps;
      }
    }
  }
  if (roles.columns == nullptr) return roles;
  roles.refusal.clear();
  if (is_swapped) std::swap(c.a, c.b);
  // Rows: loops independent of b; the innermost has the closest elements of a.
  for (const Statement* loop : c.parallel) {
    if (loop != roles.columns && stride_along(c.b, loop->id) == Stride::Zero) roles.rows = loop;
  }
  return roles;
}

const Statement* lines_around(const TileRoles& roles, const Statement* inner) {
  const Statement* lines = nullptr;
  for (const Statement* loop : roles.contraction.parallel) {
    const bool is_taken = loop == roles.columns || loop == roles.rows || loop == inner;
    const bool is_shared = !is_taken && stride_along(roles.contraction.b, loop->id) == Stride::Zero;
    if (is_shared && loop->extent.is_constant() && !loop->limit.is_defined()) lines = loop;
  }
  return lines;
}

unsigned rows_in_cache(const Scalar& load, std::size_t loop, const TargetFacts& target) {
  return rows_in_cache(distance_along(load, loop).value_or(0), target);
}

double bytes_of_row(const Contraction& c) {
  double held = 1, rows = 1, read = 1;
  for (const Dim& dim : c.a->view) held *= size_hint(dim);
  for (const Statement* loop : c.parallel)
    rows *= stride_along(c.a, loop->id) == Stride::Zero ? 1 : size_hint(loop->extent);
  for (const Statement* loop : c.reduction) read *= size_hint(loop->extent);
  return static_cast<double>(info(c.a->dtype).storage_bytes) * std::min(held / rows, read);
}

}  // namespace tenon::codegen::cpu
