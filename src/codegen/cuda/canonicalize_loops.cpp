#include "codegen/cuda/canonicalize_loops.h"

#include "codegen/cuda/binding.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/scalar_walk.h"

#include <map>
#include <memory>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

Scalar index_of(BinaryOp op, std::size_t loop, std::int64_t by) {
  ScalarNode node;
  node.kind = ScalarKind::Binary;
  node.dtype = DType::I64;
  node.binary = op;
  node.args = {loop_scalar(loop), integer_scalar(by)};
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

}  // namespace

void drop_unit_loops(Block& block) {
  Block kept;
  for (Statement& statement : block) {
    drop_unit_loops(statement.body);
    const bool is_once = statement.kind == Statement::Kind::Loop && statement.extent == Dim(1) &&
                         !statement.limit.is_defined();
    if (!is_once) {
      kept.push_back(std::move(statement));
      continue;
    }
    nests::substitute_loop(statement.body, statement.id, integer_scalar(0));
    for (Statement& inner : statement.body) kept.push_back(std::move(inner));
  }
  block = std::move(kept);
}

void collapse_odd_loops(LoopNest& nest) {
  Statement *outer = nullptr, *inner = nullptr;
  Block* block = &nest.body;
  while (block->size() == 1 && is_free(block->front()) && block->front().extent.is_constant()) {
    outer = std::exchange(inner, &block->front());
    block = &block->front().body;
  }
  if (outer == nullptr || block->size() != 1 || block->front().kind != Statement::Kind::Store)
    return;
  const std::int64_t count = outer->extent.constant(), odd = inner->extent.constant();
  if (odd % 2 == 0 || count % 2 != 0) return;
  Statement& store = block->front();
  const std::size_t rank = store.indices.size();
  const auto is_along = [&](std::size_t axis, const Statement& loop) {
    return store.indices[axis]->kind == ScalarKind::Loop && store.indices[axis]->id == loop.id &&
           store.view[axis] == loop.extent;
  };
  if (rank < 2 || !is_along(rank - 2, *outer) || !is_along(rank - 1, *inner)) return;
  // The store uses the collapsed index; loads recover both loops from it by division.
  const std::size_t joined = nest.new_loop(nest.loop_names[inner->id]);
  store.indices.resize(rank - 2);
  store.view.resize(rank - 2);
  const std::size_t outer_id = outer->id, inner_id = inner->id;
  Block body = std::move(*block);
  nests::substitute_loop(body, outer_id, index_of(BinaryOp::FloorDivide, joined, odd));
  nests::substitute_loop(body, inner_id, index_of(BinaryOp::Modulo, joined, odd));
  body.front().indices.push_back(loop_scalar(joined));
  body.front().view.push_back(count * odd);
  outer->id = joined;
  outer->extent = count * odd;
  outer->body = std::move(body);
}

void split_divided_loops(LoopNest& nest) {
  std::map<std::size_t, std::int64_t> divided;
  const auto note = [&](const ScalarNode& node) {
    const bool is_divided =
        node.kind == ScalarKind::Binary &&
        (node.binary == BinaryOp::FloorDivide || node.binary == BinaryOp::Modulo);
    if (is_divided && node.args[0]->kind == ScalarKind::Loop &&
        node.args[1]->kind == ScalarKind::Integer && node.args[1]->integer > 1)
      divided.emplace(node.args[0]->id, node.args[1]->integer);
    return false;
  };
  nests::for_each_load(nest.body, [&](const Scalar& load) { nests::any_node(load, note); });
  for (const auto& [id, by] : divided) {
    const std::size_t inner = nest.new_loop(nest.loop_names[id] + "r");
    bool is_split = false;
    nests::for_each_statement(nest.body, [&, id = id, by = by](Statement& loop) {
      const bool is_it = loop.kind == Statement::Kind::Loop && loop.id == id;
      if (!is_it || !loop.extent.is_constant() || loop.extent.constant() % by != 0 ||
          loop.limit.is_defined())
        return;
      Statement rest = loop;
      rest.id = inner;
      rest.extent = by;
      loop.extent = loop.extent.constant() / by;
      loop.body = {std::move(rest)};
      is_split = true;
    });
    if (!is_split) continue;
    const nests::Affine both{{{id, by}, {inner, 1}}, 0};
    nests::ScalarRewriter([&, id = id](ScalarNode node) {
      if (node.kind == ScalarKind::Loop && node.id == id) return nests::scalar_of(both);
      if (node.kind == ScalarKind::Binary && nests::is_integer(node.args[1], both.steps.at(id))) {
        const auto of = nests::affine_of(node.args[0]);
        if (of && *of == both && node.binary == BinaryOp::FloorDivide) return loop_scalar(id);
        if (of && *of == both && node.binary == BinaryOp::Modulo) return loop_scalar(inner);
      }
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(nest.body);
  }
}

}  // namespace tenon::codegen::cuda
