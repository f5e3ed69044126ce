#include "expr/names.h"
#include "reference/block_math.h"
#include "reference/evaluate.h"

#include <unordered_map>

namespace tenon::reference {
namespace {

// A scalar during evaluation; the dtype's lane selects the member.
struct Element {
  float f32 = 0;
  double f64 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  Complex c128;
  Text text = nullptr;

  template <class T>
  T& get() {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else if constexpr (std::is_same_v<T, double>)
      return f64;
    else if constexpr (std::is_same_v<T, std::int64_t>)
      return i64;
    else if constexpr (std::is_same_v<T, std::uint64_t>)
      return u64;
    else if constexpr (std::is_same_v<T, Complex>)
      return c128;
    else
      return text;
  }
};

using Position = std::vector<std::int64_t>;

class PlainEvaluator {
 public:
  explicit PlainEvaluator(const std::vector<const Tensor*>& operands) {
    for (const Tensor* operand : operands)
      operands_.push_back(operand ? Buffer::of(*operand) : Buffer());
  }

  // `outer` is a position in a shape to which the expression broadcasts.
  Element element(const Expr& expr, const Position& outer) {
    const ExprNode& node = expr.node();
    Position at(outer.end() - static_cast<std::ptrdiff_t>(node.dims.size()), outer.end());
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (node.dims[axis].constant() == 1) at[axis] = 0;
    }
    Element out;
    switch (node.kind) {
      case ExprKind::Operand:
        return load(operands_[node.operand], at);
      case ExprKind::Literal: {
        with_lane(lane_of(node.dtype), [&](auto zero) {
          store_literal(node, lane_of(node.dtype),
                        reinterpret_cast<std::byte*>(&out.get<decltype(zero)>()));
        });
        return out;
      }
      case ExprKind::Extent:
        out.i64 = node.extent.constant();
        return out;
      case ExprKind::Index:
        out.i64 = at[node.axes.front()];
        return out;
      default:
        break;
    }
    // Memoization: each element is computed once.
    auto& known = computed_[&node];
    const std::int64_t flat = flatten(node.dims, at);
    if (const auto found = known.find(flat); found != known.end()) return found->second;
    out = compute(node, std::move(at));
    computed_[&node].emplace(flat, out);
    return out;
  }

  static Position unflatten(const Dims& dims, std::int64_t flat) {
    Position at(dims.size());
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      at[axis] = flat % dims[axis].constant();
      flat /= dims[axis].constant();
    }
    return at;
  }

 private:
  Element compute(const ExprNode& node, Position at) {
    switch (node.kind) {
      case ExprKind::Unary:
        return unary(node, element(node.args[0], at));
      case ExprKind::Binary:
        return binary(node, element(node.args[0], at), element(node.args[1], at));
      case ExprKind::Select:
        return element(node.args[element(node.args[0], at).i64 != 0 ? 1 : 2], at);
      case ExprKind::Cast:
        return cast_element(node, element(node.args[0], at));
      case ExprKind::Read:
        return read(node, at);
      case ExprKind::Reshape:
        return element(node.args[0], unflatten(node.args[0].dims(), flatten(node.dims, at)));
      case ExprKind::Concat: {
        const std::size_t axis = node.axes.front();
        for (const Expr& part : node.args) {
          const std::int64_t extent = part.dims()[axis].constant();
          if (at[axis] < extent) return element(part, at);
          at[axis] -= extent;
        }
        break;
      }
      case ExprKind::Reduce:
        return reduced(node, at);
      case ExprKind::Scan:
        return scanned(node, at);
      case ExprKind::Scatter:
        return scattered(node, at);
      default:
        break;
    }
    TENON_ASSERT(false, "every kind of expression has elements");
  }

  static std::int64_t flatten(const Dims& dims, const Position& at) {
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      flat = flat * dims[axis].constant() + at[axis];
    return flat;
  }

  static Element load(const Buffer& buffer, const Position& at) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * buffer.strides[axis];
    Element out;
    with_lane(lane_of(buffer), [&](auto zero) {
      loader_of(buffer)(buffer, offset, 1, 1, &out.get<decltype(zero)>());
    });
    return out;
  }

  static Element unary(const ExprNode& node, Element x) {
    Element out;
    with_lane(lane_of(node.args[0].dtype()), [&](auto zero) {
      using T = decltype(zero);
      if (is_test(node.unary)) {
        out.i64 = test_element(node.unary, x.get<T>());
      } else {
        out.get<T>() = unary_element(node.unary, x.get<T>());
      }
    });
    if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    return out;
  }

  static Element binary(const ExprNode& node, Element a, Element b) {
    Element out;
    with_lane(lane_of(node.args[0].dtype()), [&](auto zero) {
      using T = decltype(zero);
      if (is_comparison(node.binary)) {
        out.i64 = compare_element(node.binary, a.get<T>(), b.get<T>());
      } else {
        out.get<T>() = binary_element(node.binary, a.get<T>(), b.get<T>());
      }
    });
    if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    return out;
  }

  static Element cast_element(const ExprNode& node, Element x) {
    Element out;
    with_lane(lane_of(node.args[0].dtype()), [&](auto from_zero) {
      using From = decltype(from_zero);
      if (node.dtype == DType::Bool) {
        out.i64 = x.get<From>() != From{};
        return;
      }
      with_lane(lane_of(node.dtype), [&](auto to_zero) {
        using To = decltype(to_zero);
        out.get<To>() = convert_element<To>(x.get<From>());
      });
    });
    if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    if (lane_of(node.dtype) == LaneType::F32) out.f32 = round_to(node.dtype, out.f32);
    return out;
  }

  Element read(const ExprNode& node, const Position& at) {
    const Dims& dims = node.args[0].dims();
    Position source(dims.size());
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      source[axis] = element(node.args[axis + 1], at).i64;
      if (source[axis] < 0 || source[axis] >= dims[axis].constant()) {
        if (node.has_fill) return element(node.args.back(), at);
        throw Error("an index lies outside its tensor")
            .expected("0 to ", dims[axis].constant() - 1, " along axis ", axis)
            .got(source[axis]);
      }
    }
    return element(node.args[0], source);
  }

  Element reduced(const ExprNode& node, const Position& at) {
    const Dims& dims = node.args[0].dims();
    Dims folded;
    for (std::size_t axis : node.axes) folded.push_back(dims[axis]);
    const std::int64_t count = product(folded).constant();
    Element out;
    with_lane(lane_of(node.args[0].dtype()), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, Text>) {
        auto total = identity_element<AccumulatorOf<T>>(node.reduction, node.dtype);
        T best{};
        std::int64_t place = 0;
        for (std::int64_t k = 0; k < count; ++k) {
          const Position term = unflatten(folded, k);
          Position inner = at;
          for (std::size_t n = 0; n < node.axes.size(); ++n) inner[node.axes[n]] = term[n];
          const T next = element(node.args[0], inner).template get<T>();
          if (!is_arg(node.reduction)) {
            total = combine(node.reduction, total, static_cast<AccumulatorOf<T>>(next));
          } else if (k == 0 || is_better(node.reduction, best, next)) {
            best = next;
            place = k;
          }
        }
        if (is_arg(node.reduction)) {
          out.i64 = place;
        } else {
          out.get<T>() = static_cast<T>(total);
        }
      }
    });
    if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    return out;
  }

  Element scanned(const ExprNode& node, const Position& at) {
    const std::size_t axis = node.axes.front();
    const std::int64_t extent = node.dims[axis].constant();
    const std::int64_t step = node.is_reverse ? -1 : 1;
    const std::int64_t end = node.is_exclusive ? at[axis] : at[axis] + step;
    Element out;
    with_lane(lane_of(node.dtype), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, Text>) {
        auto total = identity_element<AccumulatorOf<T>>(node.reduction, node.dtype);
        Position inner = at;
        for (std::int64_t k = node.is_reverse ? extent - 1 : 0; k != end; k += step) {
          inner[axis] = k;
          const T next = element(node.args[0], inner).template get<T>();
          total = combine(node.reduction, total, static_cast<AccumulatorOf<T>>(next));
        }
        out.get<T>() = static_cast<T>(total);
      }
    });
    if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    return out;
  }

  Element scattered(const ExprNode& node, const Position& at) {
    Element out = element(node.args[0], at);
    const Dims& space = node.args[1].dims();
    const std::int64_t count = product(space).constant();
    for (std::int64_t k = 0; k < count; ++k) {
      const Position update = unflatten(space, k);
      bool is_here = true;
      for (std::size_t axis = 0; axis < at.size() && is_here; ++axis) {
        is_here = element(node.args[axis + 2], update).i64 == at[axis];
      }
      if (!is_here) continue;
      Element next = element(node.args[1], update);
      with_lane(lane_of(node.dtype), [&](auto zero) {
        using T = decltype(zero);
        out.get<T>() = node.reduction == Reduction::Last
                           ? next.get<T>()
                           : combine(node.reduction, out.get<T>(), next.get<T>());
      });
      if (needs_wrap(node.dtype)) out.i64 = wrap(node.dtype, out.i64);
    }
    return out;
  }

  std::vector<Buffer> operands_;
  std::unordered_map<const ExprNode*, std::unordered_map<std::int64_t, Element>> computed_;
};

}  // namespace

Tensor evaluate_plainly(const Expr& expr, const std::vector<const Tensor*>& operands) {
  PlainEvaluator evaluator(operands);
  Buffer out = make_buffer(lane_of(expr.dtype()), constants(expr.dims()));
  with_lane(lane_of(expr.dtype()), [&](auto zero) {
    using T = decltype(zero);
    T* to = reinterpret_cast<T*>(out.tensor.mutable_bytes().data());
    for (std::int64_t k = 0; k < out.tensor.size(); ++k) {
      to[k] = evaluator.element(expr, PlainEvaluator::unflatten(expr.dims(), k)).get<T>();
    }
  });
  return to_tensor(out, expr.dtype());
}

}  // namespace tenon::reference
