#include "nests/contraction.h"

#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/stride.h"

namespace tenon::nests {
namespace {

// Loads widen, so f16 and bf16 count as well.
bool is_plain_load(const Scalar& scalar) {
  const bool is_wide =
      info(scalar->dtype).arithmetic == Arithmetic::F32 && info(scalar->dtype).storage_bytes > 1;
  return scalar->kind == ScalarKind::Load && is_wide && scalar->bounds != Bounds::Checked;
}

}  // namespace

std::optional<Contraction> find_contraction(const LoopNest& nest) {
  return find_contraction(nest.body);
}

std::optional<Contraction> find_contraction(const Block& body) {
  std::optional<Contraction> found = find_general_contraction(body);
  if (!found || !is_plain_load(found->a) || !is_plain_load(found->b)) return std::nullopt;
  return found;
}

std::optional<Contraction> find_general_contraction(const Block& body) {
  Contraction found;
  const Block* block = &body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop &&
         block->front().is_independent) {
    found.parallel.push_back(&block->front());
    block = &block->front().body;
  }
  found.inner = block;
  if (block->size() < 3 || (*block)[0].kind != Statement::Kind::Define ||
      (*block)[1].kind != Statement::Kind::Loop) {
    return std::nullopt;
  }
  const Statement* loop = &(*block)[1];
  for (;;) {
    found.reduction.push_back(loop);
    if (loop->is_independent || loop->body.size() != 1) return std::nullopt;
    if (loop->body.front().kind != Statement::Kind::Loop) break;
    loop = &loop->body.front();
  }
  const Statement& fold = loop->body.front();
  if (fold.kind != Statement::Kind::Fold || fold.reduction != Reduction::Sum ||
      fold.id != (*block)[0].id)
    return std::nullopt;
  if (fold.value->kind != ScalarKind::Binary || fold.value->binary != BinaryOp::Multiply)
    return std::nullopt;
  found.a = fold.value->args[0];
  found.b = fold.value->args[1];
  for (std::size_t k = 2; k < block->size(); ++k) {
    if ((*block)[k].kind != Statement::Kind::Define && (*block)[k].kind != Statement::Kind::Store)
      return std::nullopt;
  }
  return found;
}

void drop_casts_of_factors(LoopNest& nest) {
  const auto is_widened = [](const Scalar& scalar) {
    return scalar->kind == ScalarKind::Cast && scalar->dtype == DType::F32 &&
           scalar->args[0]->kind == ScalarKind::Load &&
           (scalar->args[0]->dtype == DType::F16 || scalar->args[0]->dtype == DType::BF16);
  };
  const auto factor = [&](const Scalar& scalar) {
    return is_widened(scalar) ? scalar->args[0] : scalar;
  };
  for_each_statement(nest.body, [&](Statement& statement) {
    const Scalar& value = statement.value;
    if (statement.kind != Statement::Kind::Fold || value->kind != ScalarKind::Binary ||
        value->binary != BinaryOp::Multiply)
      return;
    if (!is_widened(value->args[0]) && !is_widened(value->args[1])) return;
    statement.value = binary_scalar(BinaryOp::Multiply, value->dtype, factor(value->args[0]),
                                    factor(value->args[1]));
  });
}

bool can_be_repacked(const Scalar& load) {
  return load->bounds == Bounds::Inside ||
         (load->bounds == Bounds::Fill && load->args.back()->kind == ScalarKind::Real &&
          load->args.back()->real == 0);
}

bool suits_columns(const Contraction& c, std::size_t loop) {
  bool suits = true;
  for (std::size_t k = 2; k < c.inner->size(); ++k) {
    const Statement& statement = (*c.inner)[k];
    if (statement.kind == Statement::Kind::Store) {
      suits &= stride_along(statement.indices, statement.view, loop) == Stride::Unit;
    }
    const Block alone{statement};
    for_each_load(alone,
                  [&](const Scalar& load) { suits &= stride_along(load, loop) != Stride::Other; });
  }
  return suits;
}

}  // namespace tenon::nests
