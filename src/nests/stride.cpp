#include "nests/stride.h"

#include <algorithm>

namespace tenon::nests {

std::optional<std::int64_t> growth(const Scalar& scalar, std::size_t loop) {
  switch (scalar->kind) {
    case ScalarKind::Integer:
    case ScalarKind::Extent: return 0;
    case ScalarKind::Loop: return scalar->id == loop ? 1 : 0;
    case ScalarKind::Binary: {
      const auto a = growth(scalar->args[0], loop), b = growth(scalar->args[1], loop);
      if (!a || !b) return std::nullopt;
      if (*a == 0 && *b == 0) return 0;
      if (scalar->binary == BinaryOp::Add) return *a + *b;
      if (scalar->binary == BinaryOp::Subtract) return *a - *b;
      if (scalar->binary == BinaryOp::Multiply) {
        if (*b == 0 && scalar->args[1]->kind == ScalarKind::Integer) return *a * scalar->args[1]->integer;
        if (*a == 0 && scalar->args[0]->kind == ScalarKind::Integer) return *b * scalar->args[0]->integer;
      }
      return std::nullopt;
    }
    default: break;
  }
  for (const Scalar& arg : scalar->args) {
    if (growth(arg, loop) != 0) return std::nullopt;
  }
  return 0;
}

Stride stride_along(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop) {
  Stride access = Stride::Zero;
  bool is_last = true;  // axes behind this one have extent 1
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
  return stride_along({load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size())},
                      load->view, loop);
}

bool depends_on(const Scalar& scalar, std::size_t loop) {
  if (scalar->kind == ScalarKind::Loop) return scalar->id == loop;
  return std::any_of(scalar->args.begin(), scalar->args.end(), [&](const Scalar& arg) { return depends_on(arg, loop); });
}

}  // namespace tenon::nests
