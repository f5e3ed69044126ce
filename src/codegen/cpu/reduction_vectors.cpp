#include "codegen/cpu/reduction_vectors.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/cpu/row_blocks.h"
#include "nests/affine.h"
#include "nests/stride.h"

namespace tenon::codegen::cpu {
namespace {

using nests::Stride;

constexpr std::int64_t kFewestLanes = 8;

bool is_read_along(const Scalar& load, std::size_t loop) { return stride_along(load, loop) != Stride::Zero; }

// Whether a constant can be laid out anew as loops read it.
bool can_be_laid(const Scalar& load, const std::vector<bool>& may_pack) {
  if (!may_pack[load->id] || !can_be_laid_anew(load)) return false;
  return std::all_of(load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()),
                     [](const Scalar& coordinate) { return affine_of(coordinate).has_value(); });
}

// The sum in a part of the lanes' loop: `count` positions from `first` on, as vectors of `width` or
// one by one where that is 1.
Statement part_of_sum(LoopNest& nest, const ReductionRoles& roles, const Statement& fold, std::int64_t first,
                      std::int64_t count, unsigned width) {
  const std::string name = nest.loop_names[roles.lanes->id];  // new loops move the names
  const std::size_t outer = nest.new_loop(concat(name, "o")), inner = nest.new_loop(concat(name, "i"));
  const Scalar step = binary_scalar(BinaryOp::Multiply, DType::I64, loop_scalar(outer), integer_scalar(width));
  Scalar position = plus(step, integer_scalar(first));
  if (width > 1) position = plus(position, loop_scalar(inner));
  Block body{fold};
  substitute_loop(body, roles.lanes->id, position);
  const auto enclose = [&](std::size_t id, const Dim& extent) {
    Statement loop;
    loop.id = id;
    loop.extent = extent;
    loop.body = std::move(body);
    body = {std::move(loop)};
  };
  enclose(outer, count / static_cast<std::int64_t>(width));
  for (std::size_t k = roles.sum.reduction.size(); k-- > 0;) {
    const Statement* loop = roles.sum.reduction[k];
    if (loop != roles.lanes) enclose(loop->id, loop->extent);
  }
  if (width == 1) return std::move(body.front());
  enclose(inner, static_cast<std::int64_t>(width));
  body.front().loop = LoopKind::Vector;
  body.front().width = width;
  return std::move(body.front());
}

// b in the order in which it is read, lanes side by side; nothing where it stays as it is.
std::optional<Packing> packing_of(LoopNest& nest, const ReductionRoles& roles, const std::vector<Statement>& around_it) {
  const Scalar& b = roles.sum.b;
  Packing packing;
  packing.buffer = b->id;
  packing.source_dims = b->view;
  packing.coordinates.assign(b->args.begin(), b->args.begin() + static_cast<std::ptrdiff_t>(b->view.size()));
  const auto add = [&](const Statement& loop) {
    if (&loop == roles.lanes || !is_read_along(b, loop.id)) return true;
    packing.loops.push_back(loop.id);
    packing.extents.push_back(loop.extent.value().value_or(0));
    return loop.extent.is_constant();
  };
  bool is_fixed = true;
  for (const Statement& loop : around_it) is_fixed &= add(loop);
  for (const auto* loops : {&roles.sum.parallel, &roles.sum.reduction}) {
    for (const Statement* loop : *loops) is_fixed &= add(*loop);
  }
  const bool lies_so = b->bounds == Bounds::Inside && stride_along(b, roles.lanes->id) == Stride::Unit;
  if (packing.loops.empty() && lies_so) return std::nullopt;
  if (packing.loops.empty()) {  // there are always two
    packing.loops.push_back(nest.new_loop("one"));
    packing.extents.push_back(1);
  }
  packing.loops.push_back(roles.lanes->id);
  packing.extents.push_back(roles.lanes->extent.constant());
  // Nothing is left over: every position of the first loop and the lanes is one of b.
  packing.limit = (packing.extents.front() + 1) * packing.extents.back();
  return is_fixed ? std::optional(packing) : std::nullopt;
}

}  // namespace

ReductionRoles find_reduction_roles(const Block& body, const std::vector<bool>& may_pack) {
  ReductionRoles roles;
  roles.refusal = "it does not sum products of two f32, f16 or bf16 operands";
  std::optional<Contraction> found = find_contraction(body);
  if (!found) return roles;
  roles.refusal = "the length of its sum varies";
  for (const Statement* loop : found->reduction) {
    if (loop->limit.is_defined()) return roles;
  }
  roles.refusal = concat("no operand lies along a loop of the sum whose extent is a number of ", kFewestLanes,
                         " or more, with the other alike or constant");
  for (const bool swaps : {false, true}) {
    Contraction& c = roles.sum = *found;
    if (swaps) std::swap(c.a, c.b);
    for (const Statement* loop : c.reduction) {
      const bool is_long = loop->extent.is_constant() && loop->extent.constant() >= kFewestLanes;
      const bool lies = is_long && stride_along(c.a, loop->id) == Stride::Unit &&
                        (stride_along(c.b, loop->id) == Stride::Unit || can_be_laid(c.b, may_pack));
      const bool is_longer = roles.lanes == nullptr || loop->extent.constant() > roles.lanes->extent.constant();
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

std::vector<Packing> vectorise_reduction(LoopNest& nest, Block& whole, const std::vector<Statement>& around_it,
                                  const std::vector<bool>& may_pack, const TileShape& shape, LoopKind outermost) {
  const ReductionRoles roles = find_reduction_roles(whole, may_pack);
  TENON_ASSERT(roles.refusal.empty(), "the sum can be computed as dots");
  const Contraction& c = roles.sum;
  std::vector<Packing> packings;
  Scalar b = c.b;
  if (can_be_laid(c.b, may_pack)) {
    if (std::optional<Packing> packing = packing_of(nest, roles, around_it)) {
      ScalarNode node = c.b.node();
      node.bounds = Bounds::Inside;
      node.view = Dims(packing->extents.begin(), packing->extents.end());
      node.args.clear();
      for (std::size_t k = 0; k < packing->loops.size(); ++k) {
        node.args.push_back(packing->extents[k] == 1 ? integer_scalar(0) : loop_scalar(packing->loops[k]));
      }
      b = Scalar(std::make_shared<const ScalarNode>(std::move(node)));
      nest.buffers[packing->buffer].dims = b->view;
      packings.push_back(std::move(*packing));
    }
  }
  const Statement* innermost = c.reduction.back();
  Statement fold = innermost->body.front();
  fold.value = binary_scalar(BinaryOp::Multiply, fold.value->dtype, c.a, b);

  // Vectors as wide as they fit in what is left, then single numbers.
  Statement rows = *roles.rows;
  rows.loop = LoopKind::Jam;
  rows.width = shape.rows;
  rows.body = {c.inner->front()};
  const std::int64_t count = roles.lanes->extent.constant();
  std::int64_t done = 0;
  const bool is_even = count % shape.columns == 0;
  for (unsigned width = is_even ? shape.columns : shape.columns / 2; done < count; width = width > 4 ? width / 2 : 1) {
    const std::int64_t part = (count - done) / width * width;
    if (part == 0) continue;
    rows.body.push_back(part_of_sum(nest, roles, fold, done, part, width));
    done += part;
  }
  rows.body.insert(rows.body.end(), c.inner->begin() + 2, c.inner->end());

  std::vector<Statement> around;
  for (const Statement* loop : c.parallel) {
    if (loop == roles.rows) continue;
    around.push_back(*loop);
    around.back().body.clear();
    around.back().loop = outermost;
  }
  if (outermost == LoopKind::Parallel) {
    if (std::optional<Statement> blocks = split_rows(nest, rows, around)) around.push_back(std::move(*blocks));
  }
  Block body{std::move(rows)};
  for (std::size_t k = around.size(); k-- > 0;) {
    around[k].body = std::move(body);
    body = {std::move(around[k])};
  }
  whole = std::move(body);
  return packings;
}

}  // namespace tenon::codegen::cpu
