// Vectorizes contractions along the reduction dimension (dot products).
#include "codegen/cpu/reduction_vectors.h"

#include "base/error.h"
#include "codegen/cpu/row_blocks.h"
#include "nests/affine.h"
#include "nests/schedule/bind.h"
#include "nests/schedule/pack.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/split.h"
#include "nests/stride.h"

#include <algorithm>

namespace tenon::codegen::cpu {
namespace {

using nests::PackedLoop;
using nests::SplitLoop;
using nests::Stride;

constexpr std::int64_t kFewestLanes = 8;

bool is_read_along(const Scalar& load, std::size_t loop) {
  return stride_along(load, loop) != Stride::Zero;
}

// Returns whether a constant can be packed in the order of its loops.
bool can_be_laid(const Scalar& load, const std::vector<bool>& may_pack) {
  if (!may_pack[load->id] || !can_be_repacked(load)) return false;
  return std::all_of(load->args.begin(),
                     load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()),
                     [](const Scalar& coordinate) { return affine_of(coordinate).has_value(); });
}

// The loops that index b, lanes last: the axes of its packed layout, at least two.
std::vector<PackedLoop> packed_loops(LoopNest& nest, const ReductionRoles& roles,
                                     const std::vector<Statement>& around_it) {
  std::vector<PackedLoop> loops;
  const auto add = [&](const Statement& loop) {
    if (&loop != roles.lanes && is_read_along(roles.contraction.b, loop.id))
      loops.push_back({loop.id, loop.extent});
  };
  for (const Statement& loop : around_it) add(loop);
  for (const auto* list : {&roles.contraction.parallel, &roles.contraction.reduction}) {
    for (const Statement* loop : *list) add(*loop);
  }
  if (loops.empty()) loops.push_back({nest.new_loop("one"), 1});
  loops.push_back({roles.lanes->id, roles.lanes->extent});
  return loops;
}

// Returns whether b already has the packed layout.
bool lies_so(const Scalar& b, const std::vector<PackedLoop>& loops) {
  return loops.size() == 2 && loops.front().extent == Dim(1) && b->bounds == Bounds::Inside &&
         stride_along(b, loops.back().id) == Stride::Unit;
}

}  // namespace

ReductionRoles find_reduction_roles(const Block& body, const std::vector<bool>& may_pack) {
  ReductionRoles roles;
  roles.refusal = "not a contraction of two f32, f16 or bf16 operands";
  std::optional<Contraction> found = find_contraction(body);
  if (!found) return roles;
  roles.refusal = "K varies";
  for (const Statement* loop : found->reduction) {
    if (loop->limit.is_defined()) return roles;
  }
  roles.refusal = concat("no operand is contiguous along a reduction loop of ", kFewestLanes,
                         " or more iterations, with the other operand contiguous too or constant");
  for (const bool swaps : {false, true}) {
    Contraction& c = roles.contraction = *found;
    if (swaps) std::swap(c.a, c.b);
    for (const Statement* loop : c.reduction) {
      const bool is_long = loop->extent.is_constant() && loop->extent.constant() >= kFewestLanes;
      const bool lies = is_long && stride_along(c.a, loop->id) == Stride::Unit &&
                        (stride_along(c.b, loop->id) == Stride::Unit || can_be_laid(c.b, may_pack));
      const bool is_longer =
          roles.lanes == nullptr || loop->extent.constant() > roles.lanes->extent.constant();
      if (lies && is_longer) roles.lanes = loop;
    }
    if (roles.lanes == nullptr) continue;
    for (const Statement* loop : c.parallel) {
      if (is_read_along(c.a, loop->id) && !is_read_along(c.b, loop->id)) roles.rows = loop;
    }
    if (roles.rows != nullptr) {
      roles.refusal.clear();
      return roles;
    }
    roles.refusal = "there are no rows that share an operand";
    roles.lanes = nullptr;
  }
  return roles;
}

std::vector<Packing> vectorise_reduction(LoopNest& nest, Block& whole,
                                         const std::vector<Statement>& around_it,
                                         const std::vector<bool>& may_pack, const TileShape& shape,
                                         LoopKind outermost) {
  const ReductionRoles roles = find_reduction_roles(whole, may_pack);
  TENON_ASSERT(roles.refusal.empty(), "the contraction can be computed as dot products");
  const Contraction& c = roles.contraction;
  std::size_t rows = roles.rows->id, lanes = roles.lanes->id;
  const std::int64_t count = roles.lanes->extent.constant();
  std::vector<std::size_t> around, others;
  std::vector<Dim> items;
  for (const Statement* loop : c.parallel) {
    if (loop == roles.rows) continue;
    around.push_back(loop->id);
    items.push_back(loop->extent);
  }
  for (const Statement* loop : c.reduction) {
    if (loop != roles.lanes) others.push_back(loop->id);
  }
  const auto block = outermost == LoopKind::Parallel && !roles.rows->limit.is_defined()
                         ? rows_in_block(roles.rows->extent, shape.rows, items)
                         : std::nullopt;
  const bool packs = can_be_laid(c.b, may_pack);
  const std::vector<PackedLoop> loops =
      packs ? packed_loops(nest, roles, around_it) : std::vector<PackedLoop>();
  std::vector<Packing> packings;
  if (packs && !lies_so(c.b, loops)) {
    // Every position of the first loop and the lanes is an element of b, so that no padding
    // remains.
    const std::int64_t limit = (loops.front().extent.value().value_or(0) + 1) * count;
    if (auto packing = pack(nest, whole, c.b->id, loops, limit))
      packings.push_back(std::move(*packing));
  }

  // Strip-mines the reduction into vectors of decreasing width, then scalars.
  const auto with_lanes = [&](std::size_t first, std::optional<std::size_t> last) {
    std::vector<std::size_t> order{first};
    order.insert(order.end(), others.begin(), others.end());
    if (last) order.push_back(*last);
    return order;
  };
  reorder(whole, with_lanes(lanes, std::nullopt));
  std::int64_t left = count;
  const bool is_even = count % shape.columns == 0;
  for (unsigned width = is_even ? shape.columns : shape.columns / 2; left > 0;
       width = width > 4 ? width / 2 : 1) {
    const std::int64_t part = left / width * width;
    if (part == 0) continue;
    const std::size_t here = lanes;
    if (part < left) lanes = split_at(nest, whole, lanes, part);
    left -= part;
    if (width > 1) {
      const SplitLoop vectors = split(nest, whole, here, width);
      reorder(whole, with_lanes(vectors.inner, vectors.outer));
      bind_loop(whole, vectors.inner, LoopKind::Vector, width);
    } else {
      std::vector<std::size_t> order = others;
      order.push_back(here);
      reorder(whole, order);
    }
  }
  if (block) {
    const SplitLoop blocks = split(nest, whole, rows, *block, "b");
    rows = blocks.inner;
    around.push_back(blocks.outer);
  }
  std::vector<std::size_t> order = around;
  order.push_back(rows);
  reorder(whole, order);
  for (const std::size_t loop : around) bind_loop(whole, loop, outermost);
  bind_loop(whole, rows, LoopKind::Jam, shape.rows);
  return packings;
}

}  // namespace tenon::codegen::cpu
