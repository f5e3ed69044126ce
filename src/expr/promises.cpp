#include "expr/promises.h"

#include "base/error.h"

#include <algorithm>
#include <optional>

namespace tenon::inline expr {
namespace {

// A number that is affine in positions along axes, which are counted from the last as in
// broadcasting.
struct Growth {
  struct Along {
    std::size_t axis;
    std::int64_t step, last;  // `last` is the last position along the axis
  };
  std::int64_t start = 0;
  std::vector<Along> axes;

  bool add(const Growth& other, std::int64_t factor) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(other.start, factor, &scaled) ||
        __builtin_add_overflow(start, scaled, &start))
      return false;
    for (const Along& along : other.axes) {
      if (__builtin_mul_overflow(along.step, factor, &scaled)) return false;
      const auto own = std::ranges::find(axes, along.axis, &Along::axis);
      if (own == axes.end()) {
        axes.push_back({along.axis, scaled, along.last});
      } else if (own->last != along.last || __builtin_add_overflow(own->step, scaled, &own->step)) {
        return false;
      }
    }
    return true;
  }
};

std::optional<Growth> growth_of(const Expr& expr) {
  const ExprNode& node = expr.node();
  if (node.kind == ExprKind::Literal) return Growth{node.integer, {}};
  if (node.kind == ExprKind::Index) {
    const std::size_t axis = node.axes.front();
    if (!node.dims[axis].is_constant()) return std::nullopt;
    const std::int64_t last = node.dims[axis].constant() - 1;
    if (last == 0) return Growth{};
    return Growth{0, {{node.dims.size() - axis, 1, last}}};
  }
  if (node.kind != ExprKind::Binary) return std::nullopt;
  const bool is_product = node.binary == BinaryOp::Multiply;
  if (!is_product && node.binary != BinaryOp::Add && node.binary != BinaryOp::Subtract)
    return std::nullopt;
  const std::optional<Growth> a = growth_of(node.args[0]), b = growth_of(node.args[1]);
  if (!a || !b || (is_product && !a->axes.empty() && !b->axes.empty())) return std::nullopt;
  Growth sum;
  if (is_product) {
    const bool a_grows = !a->axes.empty();
    return sum.add(a_grows ? *a : *b, a_grows ? b->start : a->start) ? std::optional(sum)
                                                                     : std::nullopt;
  }
  const bool fits = sum.add(*a, 1) && sum.add(*b, node.binary == BinaryOp::Add ? 1 : -1);
  return fits ? std::optional(sum) : std::nullopt;
}

bool is_empty(const Dims& dims) {
  return std::ranges::any_of(dims, [](const Dim& extent) { return extent == Dim(0); });
}

}  // namespace

void require_inside(const Expr& source, const std::vector<Expr>& coordinates,
                    const Dims& positions) {
  if (is_empty(positions)) return;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    const Dim& extent = source.dims()[axis];
    if (!extent.is_constant()) continue;
    const std::optional<Growth> growth = growth_of(coordinates[axis]);
    if (!growth) continue;
    std::int64_t least = growth->start, greatest = growth->start;
    bool overflows = false;
    for (const Growth::Along& along : growth->axes) {
      std::int64_t reach = 0;
      overflows |= __builtin_mul_overflow(along.step, along.last, &reach);
      overflows |= __builtin_add_overflow(reach < 0 ? least : greatest, reach,
                                          reach < 0 ? &least : &greatest);
    }
    if (!overflows && least >= 0 && greatest < extent.constant()) continue;
    throw Error("an index lies outside its tensor")
        .expected("0 to ", extent.constant() - 1, " along axis ", axis)
        .got(least < 0 ? least : greatest);
  }
}

void require_same_count(const Dims& before, const Dims& after) {
  if (!all_constant(before) || !all_constant(after) || product(before) == product(after)) return;
  throw Error("the number of elements changes").expected(before).got(after);
}

void require_positions(const std::vector<Expr>& coordinates, const Dims& updates) {
  for (const Expr& coordinate : coordinates) {
    const Dims& dims = coordinate.dims();
    bool fits = dims.size() <= updates.size();
    for (std::size_t k = 0; fits && k < dims.size(); ++k) {
      // A query without an assumption: ops have assumed the symbolic cases.
      fits = dims[k] == Dim(1) ||
             !provably_different(dims[k], updates[updates.size() - dims.size() + k]);
    }
    if (!fits)
      throw Error("updates and their coordinates differ in shape").expected(updates).got(dims);
  }
}

}  // namespace tenon::inline expr
