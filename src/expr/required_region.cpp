#include "expr/required_region.h"

#include "expr/access.h"
#include "expr/analysis.h"

#include <algorithm>
#include <set>

namespace tenon::inline expr {
namespace {

// Positions along an axis: `step * position + [low, high]`, or unbounded.
struct PositionRange {
  bool is_anywhere = false;
  std::optional<std::size_t> axis;
  std::int64_t step = 0, low = 0, high = 0;

  auto operator<=>(const PositionRange&) const = default;
};
const PositionRange kAnywhere{.is_anywhere = true, .axis = {}};

PositionRange number_at(std::int64_t value) { return {.axis = {}, .low = value, .high = value}; }

PositionRange sum(const PositionRange& a, const PositionRange& b) {
  if (a.is_anywhere || b.is_anywhere || (a.axis && b.axis)) return kAnywhere;
  return {.axis = a.axis ? a.axis : b.axis,
          .step = a.step + b.step,
          .low = a.low + b.low,
          .high = a.high + b.high};
}

PositionRange scaled(const PositionRange& a, std::int64_t factor) {
  if (a.is_anywhere || factor == 0) return factor == 0 ? number_at(0) : kAnywhere;
  PositionRange result{
      .axis = a.axis, .step = a.step * factor, .low = a.low * factor, .high = a.high * factor};
  if (factor < 0) std::swap(result.low, result.high);
  return result;
}

PositionRange both(const PositionRange& a, const PositionRange& b) {
  if (a.is_anywhere || b.is_anywhere || a.axis != b.axis || a.step != b.step) return kAnywhere;
  return {.axis = a.axis,
          .step = a.step,
          .low = std::min(a.low, b.low),
          .high = std::max(a.high, b.high)};
}

class Walker {
 public:
  explicit Walker(std::size_t operand) : operand_(operand) {}

  void walk(const Expr& expr, const std::vector<PositionRange>& at) {
    const ExprNode& node = expr.node();
    if (!node.args.empty() && !seen_.emplace(&node, at).second) return;
    if (++visited_ > kMaxVisits) return;
    switch (node.kind) {
      case ExprKind::Operand:
        if (node.operand == operand_) meet(node.dims, at);
        return;
      case ExprKind::Reduce: {
        std::vector<PositionRange> inner = at;
        for (std::size_t axis : node.axes) inner[axis] = all_of(node.args[0].dims()[axis]);
        return walk(node.args[0], inner);
      }
      case ExprKind::Read: {
        std::vector<PositionRange> inner;
        for (std::size_t k = 0; k < node.args[0].rank(); ++k) {
          inner.push_back(place(node.args[1 + k], seen_from(node.dims, node.args[1 + k], at)));
          walk(node.args[1 + k], seen_from(node.dims, node.args[1 + k], at));
        }
        walk(node.args[0], inner);
        if (node.has_fill) walk(node.args.back(), seen_from(node.dims, node.args.back(), at));
        return;
      }
      case ExprKind::Reshape:
        return walk(node.args[0], reshaped(node.dims, node.args[0].dims(), at));
      case ExprKind::Concat:
      case ExprKind::Scan: {
        std::vector<PositionRange> inner = at;
        inner[node.axes[0]] = kAnywhere;
        for (const Expr& arg : node.args) walk(arg, inner);
        return;
      }
      case ExprKind::Scatter:
        for (const Expr& arg : node.args)
          walk(arg, std::vector<PositionRange>(arg.rank(), kAnywhere));
        return;
      default:
        for (const Expr& arg : node.args) walk(arg, seen_from(node.dims, arg, at));
    }
  }

  std::vector<RequiredRegion> take(const Dims& dims) const {
    std::vector<RequiredRegion> regions;
    if (!is_met_ || visited_ > kMaxVisits) return regions;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const PositionRange& places = found_[axis];
      RequiredRegion region{
          .axis = places.axis, .step = places.step, .first = 0, .count = dims[axis]};
      if (!places.is_anywhere) region.count = Dim(places.high - places.low + 1);
      if (!places.is_anywhere) region.first = places.low;
      regions.push_back(region);
    }
    return regions;
  }

 private:
  // Limit on analysed subexpressions; beyond it the region is unbounded.
  static constexpr std::size_t kMaxVisits = 10000;

  static PositionRange all_of(const Dim& extent) {
    if (!extent.is_constant() || extent.constant() == 0) return kAnywhere;
    return {.axis = {}, .high = extent.constant() - 1};
  }

  // Positions in an argument that is broadcast to a shape.
  static std::vector<PositionRange> seen_from(const Dims& dims, const Expr& arg,
                                              const std::vector<PositionRange>& at) {
    std::vector<PositionRange> inner;
    const std::size_t skipped = dims.size() - arg.rank();
    for (std::size_t axis = 0; axis < arg.rank(); ++axis) {
      inner.push_back(arg.dims()[axis] == Dim(1) ? number_at(0) : at[skipped + axis]);
    }
    return inner;
  }

  static std::vector<PositionRange> reshaped(const Dims& from, const Dims& to,
                                             const std::vector<PositionRange>& at) {
    std::vector<PositionRange> inner(to.size(), kAnywhere);
    if (squeezed(from) != squeezed(to)) return inner;
    std::size_t source = 0;
    for (std::size_t axis = 0; axis < to.size(); ++axis) {
      inner[axis] = number_at(0);
      if (to[axis] == Dim(1)) continue;
      while (from[source] == Dim(1)) ++source;
      inner[axis] = at[source++];
    }
    return inner;
  }

  // Evaluates a coordinate at given positions.
  static PositionRange place(const Expr& coordinate, const std::vector<PositionRange>& at) {
    const ExprNode& node = coordinate.node();
    if (node.kind == ExprKind::Literal) return number_at(node.integer);
    if (node.kind == ExprKind::Extent && node.extent.is_constant())
      return number_at(node.extent.constant());
    if (node.kind == ExprKind::Index) return at[node.axes[0]];
    if (node.kind != ExprKind::Binary) return kAnywhere;
    const PositionRange a = place(node.args[0], seen_from(node.dims, node.args[0], at));
    const PositionRange b = place(node.args[1], seen_from(node.dims, node.args[1], at));
    const auto is_fixed = [](const PositionRange& p) {
      return !p.is_anywhere && !p.axis && p.low == p.high;
    };
    if (node.binary == BinaryOp::Add) return sum(a, b);
    if (node.binary == BinaryOp::Subtract) return sum(a, scaled(b, -1));
    if (node.binary == BinaryOp::Multiply && is_fixed(b)) return scaled(a, b.low);
    if (node.binary == BinaryOp::Multiply && is_fixed(a)) return scaled(b, a.low);
    return kAnywhere;
  }

  void meet(const Dims& dims, const std::vector<PositionRange>& at) {
    if (!is_met_) found_ = at;
    for (std::size_t axis = 0; is_met_ && axis < dims.size(); ++axis)
      found_[axis] = both(found_[axis], at[axis]);
    is_met_ = true;
  }

  std::size_t operand_, visited_ = 0;
  bool is_met_ = false;
  std::vector<PositionRange> found_;
  // memoizes shared subexpressions
  std::set<std::pair<const ExprNode*, std::vector<PositionRange>>> seen_;
};

}  // namespace

std::vector<RequiredRegion> required_regions(const Graph& graph, NodeId id, std::size_t operand) {
  const Node& node = graph.node(id);
  if (node.results.size() != 1 || !node.bodies.empty()) return {};
  const std::vector<Expr> exprs = lowered(graph, id);
  if (exprs.size() != 1) return {};
  std::vector<PositionRange> at;
  for (std::size_t axis = 0; axis < exprs.front().rank(); ++axis)
    at.push_back({.axis = axis, .step = 1});
  Walker walker(operand);
  walker.walk(exprs.front(), at);
  return walker.take(graph.value(node.operands[operand]).type.tensor().dims);
}

}  // namespace tenon::inline expr
