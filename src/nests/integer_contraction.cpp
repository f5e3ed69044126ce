#include "nests/integer_contraction.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/scalar_walk.h"
#include "nests/stride.h"

#include <algorithm>
#include <map>

namespace tenon::nests {
namespace {

constexpr std::int64_t kDot = 4;

// The byte load under widening casts.
std::optional<Scalar> byte_load(const Scalar& factor) {
  const Scalar* at = &factor;
  while ((*at)->kind == ScalarKind::Cast && is_integer((*at)->dtype)) at = &(*at)->args.front();
  const bool is_byte = (*at)->dtype == DType::U8 || (*at)->dtype == DType::I8;
  if ((*at)->kind != ScalarKind::Load || !is_byte || (*at)->bounds == Bounds::Checked)
    return std::nullopt;
  return *at;
}

// Padded copy of `a`: extents, and padding before each axis.
struct Halo {
  Dims dims;
  std::vector<std::int64_t> before;
};

std::optional<Halo> halo_around(const Scalar& load, const Contraction& contraction,
                                std::size_t dot_axis) {
  std::map<std::size_t, Dim> extents;
  for (const auto* loops : {&contraction.parallel, &contraction.reduction}) {
    for (const Statement* loop : *loops) extents.emplace(loop->id, loop->extent);
  }
  Halo halo;
  for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
    const Dim& extent = load->view[axis];
    const auto affine = affine_of(load->args[axis]);
    if (!affine) return std::nullopt;
    std::int64_t first = affine->start;
    Dim last = affine->start;
    for (const auto& [loop, step] : affine->steps) {
      const auto count = extents.find(loop);
      if (count == extents.end() || step < 0) return std::nullopt;
      last = last + Dim(step) * (count->second - Dim(1));
    }
    const std::int64_t before = std::max<std::int64_t>(0, -first);
    Dim whole = extent + Dim(before);
    if (!provably_at_most(last + Dim(1), extent)) {
      // Pads as far as the loops read; if that is unknown, the load stays unchanged.
      if (!(last.is_constant() && extent.is_constant())) return std::nullopt;
      whole = whole + Dim(last.constant() + 1 - extent.constant());
    }
    if (axis == dot_axis) whole = ceil_div(whole, kDot) * Dim(kDot);
    halo.before.push_back(before);
    halo.dims.push_back(whole);
  }
  return halo;
}

// Copies buffer 0 into the interior of buffer 1 and fills the padding.
LoopNest copy_nest(const Scalar& load, const Halo& halo, const NestBuffer& source) {
  LoopNest nest;
  nest.name = "pad";
  nest.buffers = {{"x", source.dtype, load->view, StorageClass::Operand},
                  {"p", source.dtype, halo.dims, StorageClass::Result}};
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 1;
  store.view = halo.dims;
  ScalarNode copy = load.node();
  const Scalar fill =
      copy.bounds == Bounds::Fill ? copy.args.back() : literal_scalar(source.dtype, 0, 0);
  copy.id = 0;
  copy.bounds = Bounds::Fill;
  copy.args.clear();
  for (std::size_t axis = 0; axis < halo.dims.size(); ++axis) {
    const std::size_t loop = nest.new_loop(concat("i", axis));
    store.indices.push_back(halo.dims[axis] == Dim(1) ? integer_scalar(0) : loop_scalar(loop));
    copy.args.push_back(binary_scalar(BinaryOp::Subtract, DType::I64, store.indices.back(),
                                      integer_scalar(halo.before[axis])));
  }
  copy.args.push_back(fill);
  store.value = Scalar(std::make_shared<const ScalarNode>(std::move(copy)));
  Block body{std::move(store)};
  for (std::size_t axis = halo.dims.size(); axis-- > 0;) {
    if (halo.dims[axis] == Dim(1)) continue;
    Statement loop;
    loop.id = axis;
    loop.extent = halo.dims[axis];
    loop.is_independent = true;
    loop.body = std::move(body);
    body = {std::move(loop)};
  }
  nest.body = std::move(body);
  list_extents(nest);
  return nest;
}

}  // namespace

Scalar with_load(const Scalar& factor, const Scalar& load) {
  if (factor->kind != ScalarKind::Cast) return load;
  return cast_scalar(with_load(factor->args.front(), load), factor->dtype);
}

std::optional<Contraction> find_integer_contraction(const Block& body) {
  std::optional<Contraction> found = find_general_contraction(body);
  if (!found || found->reduction.back()->body.front().value->dtype != DType::I32)
    return std::nullopt;
  const auto a = byte_load(found->a), b = byte_load(found->b);
  if (!a || !b) return std::nullopt;
  found->a = *a;
  found->b = *b;
  return found;
}

bool has_dot_loop(const Block& block) {
  return std::ranges::any_of(block, [](const Statement& statement) {
    return statement.loop == LoopKind::Dot || has_dot_loop(statement.body);
  });
}

int dp4a_count(const Scalar& scalar) {
  int count = 0;
  any_node(scalar, [&](const ScalarNode& node) {
    count += node.kind == ScalarKind::Binary && node.binary == BinaryOp::Dp4a ? 1 : 0;
    return false;
  });
  return count;
}

bool has_dp4a(const Block& block) {
  return std::ranges::any_of(block, [](const Statement& statement) {
    return (statement.value.is_defined() && dp4a_count(statement.value) > 0) ||
           has_dp4a(statement.body);
  });
}

std::vector<NestSequence::NestCall> split_byte_padding(NestSequence& sequence,
                                                       const NestSequence::NestCall& given) {
  NestSequence::NestCall part = given;
  const std::optional<Contraction> contraction = find_integer_contraction(part.nest.body);
  if (!contraction) return {std::move(part)};
  const Scalar& load = contraction->a;
  const Statement* dot = nullptr;
  for (const Statement* loop : contraction->reduction) {
    if (stride_along(load, loop->id) == Stride::Unit) dot = loop;
  }
  const bool fills = load->bounds == Bounds::Fill;
  const bool is_even = dot != nullptr && mod(dot->extent, kDot) == Dim(0);
  if (dot == nullptr || (is_even && !fills) || !dot->extent.is_constant()) return {std::move(part)};
  if (fills && load->args.back()->kind != ScalarKind::Integer &&
      load->args.back()->kind != ScalarKind::Real) {
    return {std::move(part)};
  }
  const std::size_t last_axis = load->view.size() - 1;
  const auto halo = halo_around(load, *contraction, last_axis);
  if (!halo) return {std::move(part)};
  const std::size_t source = buffer_of(part, load->id), made = sequence.buffers.size();
  const NestBuffer from = part.nest.buffers[load->id];
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, from.dtype, halo->dims});
  NestSequence::NestCall copy;
  copy.nest = copy_nest(load, *halo, from);
  copy.buffers = {source, made};

  ScalarNode node = load.node();
  node.bounds = Bounds::Inside;
  if (fills) node.args.pop_back();
  for (std::size_t axis = 0; axis < node.args.size(); ++axis) {
    node.args[axis] = plus(node.args[axis], integer_scalar(halo->before[axis]));
  }
  node.view = halo->dims;
  node.id = part.nest.buffers.size();
  const Scalar moved(std::make_shared<const ScalarNode>(std::move(node)));
  Statement* fold = nullptr;
  for (Block* block = &part.nest.body; fold == nullptr;) {
    Statement& statement = (*block)[block->size() > 1 ? 1 : 0];
    if (statement.kind == Statement::Kind::Fold) fold = &statement;
    block = &statement.body;
  }
  fold->value = binary_scalar(BinaryOp::Multiply, fold->value->dtype,
                              with_load(fold->value->args[0], moved), fold->value->args[1]);
  part.nest.buffers.push_back({concat("p", made), from.dtype, halo->dims, StorageClass::Operand});
  part.buffers.push_back(made);
  list_extents(part.nest);
  return {std::move(copy), std::move(part)};
}

}  // namespace tenon::nests
