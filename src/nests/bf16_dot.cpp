#include "nests/bf16_dot.h"

#include "nests/stride.h"

#include <algorithm>

namespace tenon::nests {

const Statement* bf16_dot_loop(const Contraction& contraction, const Scalar& a, const Scalar& b) {
  if (a->dtype != DType::BF16 || b->dtype != DType::BF16 || !can_be_repacked(a) ||
      !can_be_repacked(b))
    return nullptr;
  const bool has_columns = std::ranges::any_of(contraction.parallel, [&](const Statement* loop) {
    return loop->extent.is_constant() && loop->extent.constant() % kPairColumns == 0 &&
           stride_along(a, loop->id) == Stride::Zero && stride_along(b, loop->id) != Stride::Zero;
  });
  if (!has_columns) return nullptr;
  for (const Statement* loop : contraction.reduction) {
    const bool is_even =
        loop->extent.is_constant() && loop->extent.constant() % 2 == 0 && !loop->limit.is_defined();
    if (is_even && stride_along(a, loop->id) == Stride::Unit) return loop;
  }
  return nullptr;
}

bool is_bf16_dot(const Statement& loop) {
  const bool is_two = loop.kind == Statement::Kind::Loop && loop.loop == LoopKind::Serial &&
                      loop.width == 2 && loop.extent == Dim(2) && !loop.is_independent &&
                      !loop.limit.is_defined();
  if (!is_two || loop.body.size() != 1 || loop.body.front().kind != Statement::Kind::Fold)
    return false;
  const Statement& fold = loop.body.front();
  const auto is_narrow = [](const Scalar& factor) {
    return factor->kind == ScalarKind::Load && factor->dtype == DType::BF16;
  };
  return fold.reduction == Reduction::Sum && fold.value->kind == ScalarKind::Binary &&
         fold.value->binary == BinaryOp::Multiply && is_narrow(fold.value->args[0]) &&
         is_narrow(fold.value->args[1]);
}

bool has_bf16_dot(const Block& block) {
  return std::ranges::any_of(block, [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop &&
           (is_bf16_dot(statement) || has_bf16_dot(statement.body));
  });
}

}  // namespace tenon::nests
