#include "codegen/cpu/collapsed_loops.h"

#include <algorithm>

#include "base/error.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/stride.h"

namespace tenon::codegen::cpu {
namespace {

using nests::Contraction;
using nests::Rewriting;

constexpr std::int64_t kEnoughRows = 8;

bool is_loop(const Scalar& scalar, std::size_t loop) {
  return scalar->kind == ScalarKind::Loop && scalar->id == loop;
}

struct Pair {
  std::size_t outer = 0, inner = 0;
  Dim inner_extent;

  bool moves_by_one(const Scalar& index) const {
    if (is_loop(index, outer)) return true;
    return inner_extent.is_constant() && !depends_on(index, inner) && growth(index, outer) == 1;
  }
  bool is_read_by(const Scalar& scalar) const { return depends_on(scalar, outer) || depends_on(scalar, inner); }
  // The axis that the outer loop moves along by one, the inner's right behind it; nothing where they do not
  // lie so.
  std::optional<std::size_t> axis_in(const std::vector<Scalar>& indices, const Dims& view) const {
    std::optional<std::size_t> found;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      if (!is_read_by(indices[axis])) continue;
      const bool is_pair = !found && axis + 1 < view.size() && moves_by_one(indices[axis]) && is_loop(indices[axis + 1], inner) && view[axis + 1] == inner_extent;
      if (!is_pair) return std::nullopt;
      found = axis++;
    }
    return found;
  }
  bool fits(const std::vector<Scalar>& indices, const Dims& view) const {
    return axis_in(indices, view) ||
           std::none_of(indices.begin(), indices.end(), [&](const Scalar& index) { return is_read_by(index); });
  }
  // Where the axes of both are one: what else moves along the outer one moves by whole inner ones.
  Scalar merged(const Scalar& index, std::size_t loop) const {
    Block holder(1);
    holder.front().value = index;
    substitute_loop(holder, outer, integer_scalar(0));
    return plus(times(holder.front().value, integer_scalar(inner_extent.constant())), loop_scalar(loop));
  }
  void merge(std::vector<Scalar>& indices, Dims& view, std::size_t loop) const {
    const auto axis = axis_in(indices, view);
    if (!axis) return;
    const auto at = static_cast<std::ptrdiff_t>(*axis);
    indices[*axis] = is_loop(indices[*axis], outer) ? loop_scalar(loop) : merged(indices[*axis], loop);
    view[*axis] = view[*axis] * view[*axis + 1];
    indices.erase(indices.begin() + at + 1);
    view.erase(view.begin() + at + 1);
  }
};

bool may_collapse(const LoopNest& nest, const Contraction& sum, const Statement& outer, const Statement& inner) {
  const Pair pair{outer.id, inner.id, inner.extent};
  if (outer.limit.is_defined() || inner.limit.is_defined()) return false;
  if (inner.extent.is_constant() && inner.extent.constant() >= kEnoughRows) return false;
  if (pair.is_read_by(sum.a) == pair.is_read_by(sum.b)) return false;  // rows share one operand
  bool fits = true;
  for_each_load(nest.body, [&](const Scalar& load) {
    fits &= pair.fits(load->args, load->view) && (load->bounds == Bounds::Inside || !pair.is_read_by(load));
  });
  for (std::size_t k = 2; k < sum.inner->size(); ++k) {
    const Statement& statement = (*sum.inner)[k];
    if (statement.kind == Statement::Kind::Store) fits &= pair.axis_in(statement.indices, statement.view).has_value();
  }
  return fits;
}

}  // namespace

void collapse_rows(LoopNest& nest) {
  const std::optional<Contraction> sum = find_contraction(nest);
  if (!sum) return;
  for (std::size_t k = sum->parallel.size(); k-- > 1;) {
    const Statement &outer = *sum->parallel[k - 1], &inner = *sum->parallel[k];
    if (!may_collapse(nest, *sum, outer, inner)) continue;
    const Pair pair{outer.id, inner.id, inner.extent};
    LoopNest made = nest;
    const std::size_t loop = made.new_loop(concat(made.loop_names[outer.id], made.loop_names[inner.id]));
    for_each_statement(made.body, [&](Statement& statement) {
      if (statement.kind == Statement::Kind::Store) pair.merge(statement.indices, statement.view, loop);
      if (statement.kind != Statement::Kind::Loop || statement.id != pair.outer) return;
      Block body = std::move(statement.body.front().body);
      statement.id = loop;
      statement.extent = statement.extent * pair.inner_extent;
      statement.body = std::move(body);
    });
    Rewriting([&](ScalarNode node) {
      if (node.kind == ScalarKind::Load) pair.merge(node.args, node.view, loop);
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(made.body);
    // A position may also be a number that is computed with.
    bool is_left = false;
    for_each_statement(made.body, [&](Statement& statement) {
      is_left |= statement.value.is_defined() && pair.is_read_by(statement.value);
    });
    if (is_left) continue;
    nest = std::move(made);
    list_extents(nest);
    return;
  }
}

}  // namespace tenon::codegen::cpu
