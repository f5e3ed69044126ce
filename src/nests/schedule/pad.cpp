#include "nests/schedule/pad.h"

#include "base/error.h"
#include "expr/access.h"
#include "nests/affine.h"
#include "nests/bf16_dot.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/stride.h"

#include <algorithm>
#include <map>

namespace tenon::nests {
namespace {

// Padding of a buffer to the range that the loops read.
struct Padded {
  Dims dims;
  std::vector<std::int64_t> before;
};
// Returns the smallest provable padding after the last element of an axis; no value if unknown.
std::optional<std::int64_t> padding_behind(const Dim& last, const Dim& extent) {
  constexpr std::int64_t kMost = 64;
  if (last.is_constant() && extent.is_constant()) {
    return std::max<std::int64_t>(0, last.constant() + 1 - extent.constant());
  }
  for (std::int64_t room = 0; room <= kMost; ++room) {
    if (provably_at_most(last + Dim(1), extent + Dim(room))) return room;
  }
  return std::nullopt;
}

std::optional<Padded> padding_around(const Scalar& load, const Contraction& contraction) {
  std::map<std::size_t, Dim> extents;
  for (const auto* loops : {&contraction.parallel, &contraction.reduction}) {
    for (const Statement* loop : *loops) extents.emplace(loop->id, loop->extent);
  }
  Padded padded;
  for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
    const Scalar& index = load->args[axis];
    const Dim& extent = load->view[axis];
    if (index->kind == ScalarKind::Loop && extents.at(index->id) == extent) {
      padded.before.push_back(0);
      padded.dims.push_back(extent);
      continue;
    }
    // The first and the last position that are read.
    const auto affine = affine_of(index);
    if (!affine) return std::nullopt;
    std::int64_t first = affine->start;
    Dim last = affine->start;
    for (const auto& [loop, step] : affine->steps) {
      const Dim steps = Dim(step) * (extents.at(loop) - Dim(1));
      if (step > 0) last = last + steps;
      if (step < 0 && !steps.is_constant()) return std::nullopt;
      if (step < 0) first += steps.constant();
    }
    const auto behind = padding_behind(last, extent);
    if (!behind) return std::nullopt;
    padded.before.push_back(std::max<std::int64_t>(0, -first));
    padded.dims.push_back(Dim(padded.before.back() + *behind) + extent);
  }
  return padded;
}

// Builds a nest that copies buffer 0 into the interior of buffer 1 and fills the padding. The last
// padded axis and the axes inside it are contiguous, padding included, and become one loop; not if
// this leaves only that loop and the batch while the inner axes already fill a vector: a fused
// consumer then recomputes only the rows that it needs.
LoopNest padding_nest(const Scalar& load, const Padded& padded, const NestBuffer& source,
                      DType dtype) {
  std::size_t last = load->view.size();
  while (last > 1 && padded.dims[last - 1] == load->view[last - 1]) --last;
  constexpr double kVector = 16;
  const double behind = size_hint(
      product({load->view.begin() + static_cast<std::ptrdiff_t>(last), load->view.end()}));
  if (last <= 2 && behind >= kVector) last = load->view.size();
  Dims from(load->view.begin(), load->view.begin() + static_cast<std::ptrdiff_t>(last));
  Dims to(padded.dims.begin(), padded.dims.begin() + static_cast<std::ptrdiff_t>(last));
  Dim before = padded.before[last - 1];
  for (std::size_t axis = last; axis < load->view.size(); ++axis) {
    from.back() = from.back() * load->view[axis];
    to.back() = to.back() * load->view[axis];
    before = before * load->view[axis];
  }
  LoopNest nest;
  nest.name = "pad";
  nest.buffers = {{"x", source.dtype, from, StorageClass::Operand},
                  {"p", dtype, to, StorageClass::Result}};
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 1;
  store.view = to;
  ScalarNode copy = load.node();
  const Scalar fill = copy.args.back();
  copy.id = 0;
  copy.view = from;
  copy.args.clear();
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    const std::size_t loop = nest.new_loop(concat("i", axis));
    const bool is_one = to[axis] == Dim(1);
    store.indices.push_back(is_one ? integer_scalar(0) : loop_scalar(loop));
    const Scalar room =
        axis + 1 == to.size() ? nest.extent(before) : integer_scalar(padded.before[axis]);
    copy.args.push_back(binary_scalar(BinaryOp::Subtract, DType::I64, store.indices.back(), room));
  }
  copy.args.push_back(fill);
  store.value = Scalar(std::make_shared<const ScalarNode>(std::move(copy)));
  Block body{std::move(store)};
  for (std::size_t axis = to.size(); axis-- > 0;) {
    if (to[axis] == Dim(1)) continue;
    nest.extent(to[axis]);
    nest.extent(from[axis]);
    Statement loop;
    loop.id = axis;
    loop.extent = to[axis];
    loop.is_independent = true;
    loop.body = std::move(body);
    body = {std::move(loop)};
  }
  nest.body = std::move(body);
  return nest;
}

double least_bytes(const Scalar& load) {
  double bytes = static_cast<double>(info(load->dtype).storage_bytes);
  for (const Dim& dim : load->view) bytes *= least_value(dim);
  return bytes;
}

// Returns whether lanes can run along all operands, as in depthwise convolutions: bounds checks are
// then uniform per vector, and loop peeling handles constant edges.
bool finds_edges(const Contraction& contraction, const Scalar& load) {
  const Scalar& other = &load.node() == &contraction.a.node() ? contraction.b : contraction.a;
  if (load->dtype != DType::F32 || other->bounds != Bounds::Inside) return false;
  for (const auto* loops : {&contraction.parallel, &contraction.reduction}) {
    for (const Statement* loop : *loops) {
      if (loop->limit.is_defined()) return false;
    }
  }
  const Scalar& lanes = load->args[load->view.size() - 1];
  if (lanes->kind != ScalarKind::Loop || stride_along(other, lanes->id) == Stride::Zero)
    return false;
  std::size_t windows = 0;
  for (std::size_t axis = 0; axis + 1 < load->view.size(); ++axis) {
    const auto affine = affine_of(load->args[axis]);
    if (!affine) return false;
    if (affine->steps.size() < 2) continue;
    const bool is_number =
        load->view[axis].is_constant() && std::ranges::all_of(affine->steps, [&](const auto& step) {
          const auto has_id = [&](const Statement* loop) {
            return loop->id == step.first && loop->extent.is_constant();
          };
          return std::ranges::any_of(contraction.parallel, has_id) ||
                 std::ranges::any_of(contraction.reduction, has_id);
        });
    if (!is_number) return false;
    ++windows;
  }
  const bool is_column = std::ranges::any_of(
      contraction.parallel, [&](const Statement* loop) { return loop->id == lanes->id; });
  return windows > 0 && is_column;
}

}  // namespace

std::vector<NestSequence::NestCall> split_padding(NestSequence& sequence,
                                                  const NestSequence::NestCall& given_part,
                                                  const std::vector<bool>& is_constant,
                                                  bool in_pairs, double most_in_place) {
  NestSequence::NestCall part = given_part;
  const std::optional<Contraction> found = find_contraction(part.nest);
  // Constants with zeros outside are packed with their zeros.
  Scalar load;
  for (const Scalar& read : found ? std::vector{found->b, found->a} : std::vector<Scalar>()) {
    const std::size_t id = buffer_of(part, read->id);
    const bool is_laid = id < is_constant.size() && is_constant[id] && can_be_repacked(read);
    if (read->bounds == Bounds::Fill && !is_laid) load = read;
  }
  const bool fills_with_number = load.is_defined() && load->args.back()->kind == ScalarKind::Real;
  const bool is_copied =
      fills_with_number && !(least_bytes(load) <= most_in_place && finds_edges(*found, load));
  const auto padded = is_copied ? padding_around(load, *found) : std::nullopt;
  if (!padded) return {std::move(part)};
  const std::size_t source = buffer_of(part, load->id), made = sequence.buffers.size();
  const NestBuffer from = part.nest.buffers[load->id];
  // Otherwise the contraction would convert elements repeatedly.
  const bool is_paired = in_pairs && (bf16_dot_loop(*found, found->a, found->b) != nullptr ||
                                      bf16_dot_loop(*found, found->b, found->a) != nullptr);
  const DType dtype = is_paired ? from.dtype : DType::F32;
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, dtype, padded->dims});
  NestSequence::NestCall copy;
  copy.nest = padding_nest(load, *padded, from, dtype);
  copy.buffers = {source, made};

  ScalarNode node = load.node();
  node.bounds = Bounds::Inside;
  node.args.pop_back();
  for (std::size_t axis = 0; axis < node.args.size(); ++axis) {
    node.args[axis] = plus(node.args[axis], integer_scalar(padded->before[axis]));
  }
  node.view = padded->dims;
  read_copy(part, *found, load, {concat("p", made), dtype, padded->dims, StorageClass::Operand},
            made, std::move(node));
  drop_unused_buffers(part);
  list_extents(copy.nest);
  list_extents(part.nest);
  return {std::move(copy), std::move(part)};
}

}  // namespace tenon::nests
