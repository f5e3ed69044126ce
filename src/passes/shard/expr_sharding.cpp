#include "passes/shard/expr_sharding.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::passes {
namespace {

struct Refused {
  std::string why;
};

// Range of positions, which are extents and their products; unknown for larger numbers.
struct Interval {
  std::int64_t low = 0, high = 0;
  bool is_one() const { return low == high; }
  std::optional<Interval> if_small() const {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (low < -kMost || high > kMost) return std::nullopt;
    return *this;
  }
};

// Relation of a rank's value to the value of the whole expression. The split axis follows from the
// extents.
struct RankValue {
  std::optional<std::size_t> axis;  // axis of the split
  bool is_partial = false;          // the whole is the sum over ranks
  std::int64_t shift = 0;           // offset of positions: the whole's is larger by rank * shift
  std::optional<Interval> range;    // range of positions on the rank
};

bool is_zero(const Expr& expr) {
  const ExprNode& node = expr.node();
  return node.kind == ExprKind::Literal && node.real == 0 && node.integer == 0;
}

bool is_same_number(const ExprNode& a, const ExprNode& b) {
  return (a.real == b.real || (a.real != a.real && b.real != b.real)) && a.integer == b.integer;
}

std::int64_t product_before(const Dims& dims, std::size_t axis) {
  std::int64_t count = 1;
  for (std::size_t k = 0; k < axis; ++k) count *= dims[k].constant();
  return count;
}

class Follower {
 public:
  Follower(std::span<const Sharding> operands, std::int64_t ranks)
      : operands_(operands), ranks_(ranks) {}

  const RankValue& follow(const Expr& whole, const Expr& part) {
    const auto key = std::pair(&whole.node(), &part.node());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    RankValue held = made(whole, part);
    if (held.is_partial && held.axis) throw Refused{"a partial sum cannot be sharded"};
    return known_.emplace(key, std::move(held)).first->second;
  }

 private:
  RankValue made(const Expr& whole, const Expr& part) {
    const ExprNode &w = whole.node(), &p = part.node();
    if (w.dtype != p.dtype || w.dims.size() != p.dims.size()) throw other_form();
    RankValue held;
    held.axis = split_axis(w.dims, p.dims);
    if (w.kind != p.kind || w.args.size() != p.args.size()) return lone_position(w, p, held);
    switch (w.kind) {
      case ExprKind::Operand:
        return operand(w, p, held);
      case ExprKind::Literal:
        if (!is_same_number(w, p)) throw Refused{"a number in it depends on the extent"};
        if (w.dtype == DType::I64) held.range = Interval{w.integer, w.integer}.if_small();
        return held;
      case ExprKind::Extent:
        throw Refused{"an extent is not known"};
      case ExprKind::Index:
        if (w.axes != p.axes) throw other_form();
        return position(p, held);
      case ExprKind::Unary:
        return unary(w, p, held);
      case ExprKind::Binary:
        return binary(w, p, held);
      case ExprKind::Select:
        return choice(w, p, held);
      case ExprKind::Cast: {
        const RankValue& x = follow(w.args[0], p.args[0]);
        require_no_shift(x);
        if (x.is_partial && !(is_float(w.dtype) && is_float(w.args[0].dtype()))) throw not_linear();
        held.is_partial = x.is_partial;
        return held;
      }
      case ExprKind::Read:
        return read(w, p, held);
      case ExprKind::Reshape:
        return reshaped(w, p, held);
      case ExprKind::Concat:
        return joined(w, p, held);
      case ExprKind::Reduce:
        return reduced(w, p, held);
      case ExprKind::Scan: {
        const RankValue& x = follow(w.args[0], p.args[0]);
        if (w.axes != p.axes || w.reduction != p.reduction) throw other_form();
        require_no_shift(x);
        if (x.axis == w.axes[0]) throw Refused{"it runs along the axis"};
        if (x.is_partial && w.reduction != Reduction::Sum) throw not_linear();
        held.is_partial = x.is_partial;
        return held;
      }
      case ExprKind::Scatter:
        return scattered(w, p, held);
    }
    throw other_form();
  }

  static Refused other_form() { return {"it computes something else where extents are smaller"}; }
  static Refused not_linear() { return {"not linear in the partial sums"}; }
  static Refused crosses() { return {"an element needs what other ranks have"}; }

  static void require_no_shift(const RankValue& x) {
    if (x.shift != 0) throw Refused{"it depends on the position along the axis"};
  }

  std::optional<std::size_t> split_axis(const Dims& whole, const Dims& part) const {
    std::optional<std::size_t> axis;
    for (std::size_t k = 0; k < whole.size(); ++k) {
      if (whole[k] == part[k]) continue;
      const bool is_part = whole[k].is_constant() && part[k].is_constant() &&
                           whole[k].constant() == ranks_ * part[k].constant();
      if (axis || !is_part) throw other_form();
      axis = k;
    }
    return axis;
  }

  // Requires operand and result to be split along the same axis, unless the operand has extent 1
  // there and is broadcast.
  static void require_aligned(const Expr& whole, const RankValue& x, const ExprNode& result,
                              const RankValue& held) {
    const std::size_t skipped = result.dims.size() - whole.rank();
    if (x.axis && held.axis != skipped + *x.axis) throw crosses();
    if (!held.axis || x.axis || *held.axis < skipped) return;
    if (!(whole.dims()[*held.axis - skipped] == Dim(1))) throw crosses();
  }
  const RankValue& aligned(const ExprNode& w, const ExprNode& p, std::size_t arg,
                           const RankValue& held) {
    const RankValue& x = follow(w.args[arg], p.args[arg]);
    require_aligned(w.args[arg], x, w, held);
    return x;
  }

  RankValue operand(const ExprNode& w, const ExprNode& p, RankValue held) const {
    const Sharding& sharding = operands_[w.operand];
    const bool is_as_said =
        w.operand == p.operand &&
        (sharding.is_split() ? held.axis == sharding.axis : !held.axis.has_value());
    if (!is_as_said) throw other_form();
    held.is_partial = sharding.is_partial();
    return held;
  }

  RankValue position(const ExprNode& p, RankValue held) const {
    const std::int64_t extent = p.dims[p.axes[0]].constant();
    if (held.axis == p.axes[0]) held.shift = extent;
    held.range = Interval{0, extent - 1};
    return held;
  }

  // With one position per rank, the position may be written as 0 times it.
  RankValue lone_position(const ExprNode& w, const ExprNode& p, const RankValue& held) const {
    const bool is_lone = w.kind == ExprKind::Index && p.kind == ExprKind::Binary &&
                         p.binary == BinaryOp::Multiply && is_zero(p.args[1]) &&
                         p.dims[w.axes[0]] == Dim(1);
    if (!is_lone) throw other_form();
    RankValue made = held;
    if (held.axis == w.axes[0]) made.shift = 1;
    made.range = Interval{0, 0};
    return made;
  }

  RankValue unary(const ExprNode& w, const ExprNode& p, RankValue held) {
    const RankValue& x = follow(w.args[0], p.args[0]);
    if (w.unary != p.unary) throw other_form();
    if (w.unary == UnaryOp::Negate) {
      held.is_partial = x.is_partial;
      held.shift = -x.shift;
      if (x.range) held.range = Interval{-x.range->high, -x.range->low};
      return held;
    }
    require_no_shift(x);
    if (x.is_partial) throw not_linear();
    return held;
  }

  RankValue binary(const ExprNode& w, const ExprNode& p, RankValue held) {
    if (w.binary != p.binary) throw other_form();
    const RankValue a = aligned(w, p, 0, held), b = aligned(w, p, 1, held);
    held.is_partial = partial_of(w.binary, a.is_partial, b.is_partial);
    held.shift = shift_of(w.binary, a, b);
    if (w.dtype == DType::I64) held.range = range_of(w.binary, a, b);
    return held;
  }

  static bool partial_of(BinaryOp op, bool a, bool b) {
    if (!a && !b) return false;
    const bool is_sum = (op == BinaryOp::Add || op == BinaryOp::Subtract) && a && b;
    const bool is_scaled = (op == BinaryOp::Multiply && a != b) || (op == BinaryOp::Divide && !b);
    if (!is_sum && !is_scaled) throw not_linear();
    return true;
  }

  static std::int64_t shift_of(BinaryOp op, const RankValue& a, const RankValue& b) {
    if (a.shift == 0 && b.shift == 0) return 0;
    const auto factor = [](const RankValue& x) -> std::optional<std::int64_t> {
      if (x.shift != 0 || !x.range || !x.range->is_one()) return std::nullopt;
      return x.range->low;
    };
    const std::optional<std::int64_t> right = factor(b);
    switch (op) {
      case BinaryOp::Add:
        return a.shift + b.shift;
      case BinaryOp::Subtract:
        return a.shift - b.shift;
      case BinaryOp::Multiply:
        if (right) return a.shift * *right;
        if (factor(a)) return b.shift * *factor(a);
        break;
      case BinaryOp::FloorDivide:
        if (right && *right > 0 && a.shift % *right == 0) return a.shift / *right;
        break;
      case BinaryOp::Modulo:
        if (right && *right > 0 && a.shift % *right == 0) return 0;
        break;
      case BinaryOp::Minimum:
      case BinaryOp::Maximum:
        if (a.shift == b.shift) return a.shift;
        break;
      case BinaryOp::Equal:
      case BinaryOp::Less:
      case BinaryOp::LessEqual:
        if (a.shift == b.shift) return 0;
        break;
      default:
        break;
    }
    throw Refused{"it depends on the position along the axis"};
  }

  static std::optional<Interval> range_of(BinaryOp op, const RankValue& a, const RankValue& b) {
    if (!a.range || !b.range) return std::nullopt;
    const Interval &x = *a.range, &y = *b.range;
    switch (op) {
      case BinaryOp::Add:
        return Interval{x.low + y.low, x.high + y.high}.if_small();
      case BinaryOp::Subtract:
        return Interval{x.low - y.high, x.high - y.low}.if_small();
      case BinaryOp::Multiply: {
        const auto [low, high] =
            std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
        return Interval{low, high}.if_small();
      }
      case BinaryOp::FloorDivide:
        if (!y.is_one() || y.low <= 0 || x.low < 0) return std::nullopt;
        return Interval{x.low / y.low, x.high / y.low};
      case BinaryOp::Modulo:
        if (!y.is_one() || y.low <= 0) return std::nullopt;
        return Interval{0, y.low - 1};
      case BinaryOp::Minimum:
        return Interval{std::min(x.low, y.low), std::min(x.high, y.high)};
      case BinaryOp::Maximum:
        return Interval{std::max(x.low, y.low), std::max(x.high, y.high)};
      default:
        return std::nullopt;
    }
  }

  RankValue choice(const ExprNode& w, const ExprNode& p, RankValue held) {
    const RankValue condition = aligned(w, p, 0, held);
    const RankValue a = aligned(w, p, 1, held), b = aligned(w, p, 2, held);
    if (condition.is_partial || a.shift != b.shift) throw other_form();
    const bool is_linear =
        (a.is_partial || is_zero(w.args[1])) && (b.is_partial || is_zero(w.args[2]));
    held.is_partial = a.is_partial || b.is_partial;
    if (held.is_partial && !is_linear) throw not_linear();
    held.shift = a.shift;
    if (a.range && b.range)
      held.range =
          Interval{std::min(a.range->low, b.range->low), std::max(a.range->high, b.range->high)};
    return held;
  }

  // Requires each rank to find the elements it reads in its own shard.
  void require_inside(const ExprNode& w, const ExprNode& p, std::size_t first,
                      const RankValue& base, const Dims& base_dims, const ExprNode& space,
                      const RankValue& held) {
    for (std::size_t k = 0; k < base_dims.size(); ++k) {
      const RankValue& at = follow(w.args[first + k], p.args[first + k]);
      require_aligned(w.args[first + k], at, space, held);
      if (at.is_partial) throw not_linear();
      if (base.axis != k) {
        require_no_shift(at);
        continue;
      }
      const std::int64_t extent = base_dims[k].constant();
      const bool is_inside =
          at.shift == extent && at.range && at.range->low >= 0 && at.range->high < extent;
      if (!is_inside) throw crosses();
    }
  }

  RankValue read(const ExprNode& w, const ExprNode& p, RankValue held) {
    if (w.has_fill != p.has_fill) throw other_form();
    const RankValue source = follow(w.args[0], p.args[0]);
    require_no_shift(source);
    require_inside(w, p, 1, source, p.args[0].dims(), w, held);
    held.is_partial = source.is_partial;
    if (!w.has_fill) return held;
    const RankValue fill = aligned(w, p, w.args.size() - 1, held);
    require_no_shift(fill);
    if (fill.is_partial != source.is_partial && !(source.is_partial && is_zero(w.args.back())))
      throw not_linear();
    return held;
  }

  RankValue reshaped(const ExprNode& w, const ExprNode& p, RankValue held) {
    const RankValue& x = follow(w.args[0], p.args[0]);
    if (x.axis.has_value() != held.axis.has_value()) throw crosses();
    // Shards are contiguous in both.
    if (x.axis && product_before(w.args[0].dims(), *x.axis) != product_before(w.dims, *held.axis))
      throw crosses();
    held.is_partial = x.is_partial;
    held.shift = x.shift;
    held.range = x.range;
    return held;
  }

  RankValue joined(const ExprNode& w, const ExprNode& p, RankValue held) {
    if (w.axes != p.axes || held.axis == w.axes[0]) throw crosses();
    std::size_t partial = 0;
    for (std::size_t k = 0; k < w.args.size(); ++k) {
      const RankValue& x = follow(w.args[k], p.args[k]);
      if (x.axis != held.axis) throw crosses();
      require_no_shift(x);
      partial += x.is_partial ? 1 : 0;
    }
    held.is_partial = partial > 0;
    if (held.is_partial && partial != w.args.size()) throw not_linear();
    return held;
  }

  RankValue reduced(const ExprNode& w, const ExprNode& p, RankValue held) {
    if (w.axes != p.axes || w.reduction != p.reduction) throw other_form();
    const RankValue& x = follow(w.args[0], p.args[0]);
    require_no_shift(x);
    const bool is_over = x.axis && std::ranges::find(w.axes, *x.axis) != w.axes.end();
    held.is_partial = is_over || x.is_partial;
    if (held.is_partial && w.reduction != Reduction::Sum) throw Refused{"not a sum over the axis"};
    return held;
  }

  RankValue scattered(const ExprNode& w, const ExprNode& p, const RankValue& held) {
    if (w.reduction != p.reduction) throw other_form();
    const RankValue base = follow(w.args[0], p.args[0]), updates = follow(w.args[1], p.args[1]);
    require_no_shift(base);
    require_no_shift(updates);
    if (base.is_partial || updates.is_partial) throw not_linear();
    if (base.axis.has_value() != updates.axis.has_value()) throw crosses();
    require_inside(w, p, 2, base, p.args[0].dims(), w.args[1].node(), updates);
    return held;
  }

  std::span<const Sharding> operands_;
  std::int64_t ranks_;
  std::map<std::pair<const ExprNode*, const ExprNode*>, RankValue> known_;
};

}  // namespace

std::variant<Sharding, std::string> sharding_of(const Expr& whole, const Expr& part,
                                                std::span<const Sharding> operands,
                                                std::int64_t ranks) {
  try {
    const RankValue held = Follower(operands, ranks).follow(whole, part);
    if (held.shift != 0) return "it depends on the position along the axis";
    if (held.is_partial) return Sharding::partial();
    return held.axis ? Sharding::split(*held.axis) : Sharding::whole();
  } catch (const Refused& refused) {
    return refused.why;
  }
}

}  // namespace tenon::passes
