#include "nests/stride.h"

#include "nests/scalar_walk.h"

namespace tenon::nests {

namespace {

class StrideWalk {
 public:
  explicit StrideWalk(std::size_t loop) : loop_(loop) {}
  using Increment = std::optional<std::int64_t>;
  Increment of(const Scalar& scalar) {
    return known_.of(scalar, [&] { return found(scalar); });
  }

 private:
  Increment found(const Scalar& scalar) {
    switch (scalar->kind) {
      case ScalarKind::Integer:
      case ScalarKind::Extent:
        return 0;
      case ScalarKind::Loop:
        return scalar->id == loop_ ? 1 : 0;
      case ScalarKind::Binary:
        return of_binary(scalar);
      default:
        break;
    }
    for (const Scalar& arg : scalar->args) {
      if (of(arg) != 0) return std::nullopt;
    }
    return 0;
  }

  // No value on overflow.
  Increment of_binary(const Scalar& scalar) {
    const Increment a = of(scalar->args[0]), b = of(scalar->args[1]);
    if (!a || !b) return std::nullopt;
    if (*a == 0 && *b == 0) return 0;
    std::int64_t step = 0;
    bool is_exact = false;
    if (scalar->binary == BinaryOp::Add) is_exact = !__builtin_add_overflow(*a, *b, &step);
    if (scalar->binary == BinaryOp::Subtract) is_exact = !__builtin_sub_overflow(*a, *b, &step);
    if (scalar->binary == BinaryOp::Multiply) {
      const Scalar& factor = scalar->args[*a == 0 ? 0 : 1];
      is_exact = factor->kind == ScalarKind::Integer &&
                 !__builtin_mul_overflow(*a == 0 ? *b : *a, factor->integer, &step);
    }
    return is_exact ? Increment(step) : std::nullopt;
  }

  std::size_t loop_;
  ScalarMemo<Increment> known_;
};

}  // namespace

std::optional<std::int64_t> growth(const Scalar& scalar, std::size_t loop) {
  return StrideWalk(loop).of(scalar);
}

Stride stride_along(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop) {
  Stride access = Stride::Zero;
  bool is_last = true;  // All inner axes have extent 1.
  for (std::size_t axis = view.size(); axis-- > 0;) {
    const auto step = growth(indices[axis], loop);
    if (!step) return Stride::Other;
    if (*step != 0) {
      if (!is_last || *step != 1 || access != Stride::Zero) return Stride::Other;
      access = Stride::Unit;
    }
    if (view[axis] != Dim(1)) is_last = false;
  }
  return access;
}

Stride stride_along(const Scalar& load, std::size_t loop) {
  return stride_along(
      {load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size())},
      load->view, loop);
}

bool depends_on(const Scalar& scalar, std::size_t loop) {
  return any_node(scalar, [&](const ScalarNode& node) {
    return node.kind == ScalarKind::Loop && node.id == loop;
  });
}

}  // namespace tenon::nests
