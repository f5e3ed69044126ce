#include "nests/schedule/collapse.h"

#include "base/error.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/schedule/loops.h"
#include "nests/stride.h"

#include <algorithm>
#include <optional>

namespace tenon::nests {
namespace {

bool is_loop(const Scalar& scalar, std::size_t loop) {
  return scalar->kind == ScalarKind::Loop && scalar->id == loop;
}

struct LoopPair {
  std::size_t outer = 0, inner = 0;
  Dim inner_extent;

  bool is_read_by(const Scalar& scalar) const {
    return depends_on(scalar, outer) || depends_on(scalar, inner);
  }
  bool moves_by_one(const Scalar& index) const {
    if (is_loop(index, outer)) return true;
    return inner_extent.is_constant() && !depends_on(index, inner) && growth(index, outer) == 1;
  }
  // Returns the axis that the outer loop indexes with step one, directly followed by the inner
  // loop's axis; no value if no axis matches.
  std::optional<std::size_t> axis_in(const std::vector<Scalar>& indices, const Dims& view) const {
    std::optional<std::size_t> found;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      if (!is_read_by(indices[axis])) continue;
      const bool is_bf16_dot = !found && axis + 1 < view.size() && moves_by_one(indices[axis]) &&
                               is_loop(indices[axis + 1], inner) && view[axis + 1] == inner_extent;
      if (!is_bf16_dot) return std::nullopt;
      found = axis++;
    }
    return found;
  }
  bool fits(const std::vector<Scalar>& indices, const Dims& view) const {
    return axis_in(indices, view) ||
           std::none_of(indices.begin(), indices.end(),
                        [&](const Scalar& index) { return is_read_by(index); });
  }
  // Both axes become one: other terms of the outer coordinate are scaled by the inner extent.
  Scalar merged(const Scalar& index, std::size_t loop) const {
    Block holder(1);
    holder.front().value = index;
    substitute_loop(holder, outer, integer_scalar(0));
    return plus(times(holder.front().value, integer_scalar(inner_extent.constant())),
                loop_scalar(loop));
  }
  void merge(std::vector<Scalar>& indices, Dims& view, std::size_t loop) const {
    const auto axis = axis_in(indices, view);
    if (!axis) return;
    const auto at = static_cast<std::ptrdiff_t>(*axis);
    indices[*axis] =
        is_loop(indices[*axis], outer) ? loop_scalar(loop) : merged(indices[*axis], loop);
    view[*axis] = view[*axis] * view[*axis + 1];
    indices.erase(indices.begin() + at + 1);
    view.erase(view.begin() + at + 1);
  }
};

}  // namespace

bool collapse(LoopNest& nest, std::size_t outer, std::size_t inner) {
  const Statement* around = find_loop(nest.body, outer);
  TENON_ASSERT(around != nullptr, "the loop that is collapsed is there");
  if (around->body.size() != 1 || around->body.front().kind != Statement::Kind::Loop ||
      around->body.front().id != inner)
    return false;
  const Statement& inside = around->body.front();
  if (around->limit.is_defined() || inside.limit.is_defined() ||
      around->is_independent != inside.is_independent)
    return false;
  const LoopPair pair{outer, inner, inside.extent};
  bool fits = true;
  for_each_load(nest.body, [&](const Scalar& load) {
    fits &= pair.fits(load->args, load->view) &&
            (load->bounds == Bounds::Inside || !pair.is_read_by(load));
  });
  for_each_statement(nest.body, [&](Statement& statement) {
    const bool writes =
        statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update;
    if (writes) fits &= pair.fits(statement.indices, statement.view);
    if (statement.limit.is_defined()) fits &= !pair.is_read_by(statement.limit);
  });
  if (!fits) return false;
  LoopNest made = nest;
  const std::size_t loop = made.new_loop(concat(made.loop_names[outer], made.loop_names[inner]));
  for_each_statement(made.body, [&](Statement& statement) {
    if (!statement.indices.empty()) pair.merge(statement.indices, statement.view, loop);
    if (statement.kind != Statement::Kind::Loop || statement.id != pair.outer) return;
    Block body = std::move(statement.body.front().body);
    statement.id = loop;
    statement.extent = statement.extent * pair.inner_extent;
    statement.body = std::move(body);
  });
  ScalarRewriter([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load) pair.merge(node.args, node.view, loop);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }).apply(made.body);
  // Positions may also be used as values.
  bool is_left = false;
  for_each_statement(made.body, [&](Statement& statement) {
    is_left |= statement.value.is_defined() && pair.is_read_by(statement.value);
  });
  if (is_left) return false;
  nest = std::move(made);
  list_extents(nest);
  return true;
}

}  // namespace tenon::nests
