#include "ops/collective.h"

#include "base/error.h"
#include "base/lockstep.h"
#include "ir/assumptions.h"
#include "ops/operand_limits.h"
#include "ops/tensor_parts.h"
#include "tenon/builder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tenon {
namespace {

template <class T>
void add_plain(std::span<std::byte> y, std::span<const std::byte> x) {
  auto* to = reinterpret_cast<T*>(y.data());
  const auto* from = reinterpret_cast<const T*>(x.data());
  const std::size_t count = y.size() / sizeof(T);
  for (std::size_t k = 0; k < count; ++k) to[k] += from[k];
}

// Through tensors, which know every type's rounding.
void add_by_element(DType dtype, std::span<std::byte> y, std::span<const std::byte> x) {
  const auto count =
      static_cast<std::int64_t>(y.size() / static_cast<std::size_t>(info(dtype).storage_bytes));
  Tensor a(dtype, {count}), b(dtype, {count});
  std::memcpy(a.mutable_bytes().data(), y.data(), y.size());
  std::memcpy(b.mutable_bytes().data(), x.data(), x.size());
  for (std::int64_t k = 0; k < count; ++k) {
    if (is_float(dtype)) {
      a.set_real(k, a.real_at(k) + b.real_at(k));
    } else {
      a.set_integer(k, a.integer_at(k) + b.integer_at(k));
    }
  }
  std::memcpy(y.data(), a.bytes().data(), y.size());
}

}  // namespace

bool is_collective(const OpDef& op) {
  static constexpr std::array<std::string_view, 7> names = {
      "all_gather", "all_reduce", "broadcast", "rank_slice", "receive", "reduce_scatter", "send"};
  return std::ranges::find(names, op.name) != names.end();
}

void add_elements(DType dtype, std::span<std::byte> y, std::span<const std::byte> x) {
  TENON_ASSERT(y.size() == x.size(), "both have as many elements");
  if (y.empty()) return;
  switch (dtype) {
    case DType::F32:
      return add_plain<float>(y, x);
    case DType::F64:
      return add_plain<double>(y, x);
    case DType::I64:
      return add_plain<std::uint64_t>(y, x);  // unsigned: sums wrap
    case DType::I32:
      return add_plain<std::uint32_t>(y, x);
    default:
      return add_by_element(dtype, y, x);
  }
}

RankSum::RankSum(Communicator& ranks, DType dtype, std::size_t count)
    : ranks_(ranks), dtype_(dtype), count_(count) {
  const std::size_t size = range_of(ranks.rank()).size;
  sum_.resize(size);
  others_.resize(size * static_cast<std::size_t>(ranks.size() - 1));
}

// Equal pieces; the last ones may be smaller, or empty.
RankSum::Range RankSum::range_of(int rank) const {
  const auto size = static_cast<std::size_t>(ranks_.size());
  const std::size_t piece = (count_ + size - 1) / size;
  const std::size_t begin = std::min(count_, piece * static_cast<std::size_t>(rank));
  const auto bytes = static_cast<std::size_t>(info(dtype_).storage_bytes);
  return {begin * bytes, (std::min(count_, begin + piece) - begin) * bytes};
}

void RankSum::add(std::span<const std::byte> part) {
  const int size = ranks_.size(), mine = ranks_.rank();
  std::vector<std::span<const std::byte>> given(static_cast<std::size_t>(size));
  std::vector<std::span<std::byte>> taken(given.size());
  std::size_t place = 0;
  for (int k = 0; k < size; ++k) {
    if (k == mine) continue;
    const Range range = range_of(k);
    given[static_cast<std::size_t>(k)] = part.subspan(range.begin, range.size);
    taken[static_cast<std::size_t>(k)] = std::span(others_).subspan(place, sum_.size());
    place += sum_.size();
  }
  ranks_.exchange(given, taken);
  const Range own = range_of(mine);
  for (int k = 0; k < size; ++k) {
    const std::span<const std::byte> next =
        k == mine ? part.subspan(own.begin, own.size) : taken[static_cast<std::size_t>(k)];
    if (std::exchange(is_empty_, false)) {
      std::copy(next.begin(), next.end(), sum_.begin());
    } else {
      add_elements(dtype_, sum_, next);
    }
  }
}

void RankSum::take(std::span<std::byte> total) {
  std::vector<std::span<std::byte>> places;
  for (int k = 0; k < ranks_.size(); ++k) {
    const Range range = range_of(k);
    places.push_back(total.subspan(range.begin, range.size));
  }
  ranks_.all_gather(sum_, places);
  is_empty_ = true;
}

Communicator& ranks_of(Evaluation& op) {
  if (op.communicator == nullptr) {
    static const std::unique_ptr<Communicator> alone = one_rank();  // holds nothing
    return *alone;
  }
  return *op.communicator;
}

RankGroup group_of(Evaluation& op, std::int64_t size, std::int64_t stride) {
  Communicator& all = ranks_of(op);
  const auto ranks = static_cast<int>(size), apart = static_cast<int>(stride);
  if (RankGroup::comes_out_even(all.size(), ranks, apart)) return {all, ranks, apart};
  throw Error(concat(op.op->name, ": the graph is for another number of ranks"), ErrorKind::Usage)
      .expected(size * stride)
      .got(all.size());
}

std::vector<AttrField<GroupAttrs>> group_fields() {
  return {
      {"ranks", &GroupAttrs::ranks}, {"stride", &GroupAttrs::stride}, {"axis", &GroupAttrs::axis}};
}

TensorType require_group(const GroupAttrs& attrs, const OperandTypes& in, Elements elements) {
  const TensorType& x = require_elements(in, "x", elements);
  require_at_least(in.op_name(), "ranks", attrs.ranks, 1);
  require_at_least(in.op_name(), "stride", attrs.stride, 1);
  if (attrs.axis >= 0 && attrs.axis < static_cast<std::int64_t>(x.rank())) return x;
  throw Error(concat(in.op_name(), ": x has no axis ", attrs.axis)).got(x);
}

TensorType part_type(std::string_view op, const GroupAttrs& attrs, TensorType whole) {
  Dim& extent = whole.dims[static_cast<std::size_t>(attrs.axis)];
  const Dim part = floor_div(extent, attrs.ranks);
  if (!assume_equal(part * attrs.ranks, extent)) {
    throw Error(concat(op, ": axis ", attrs.axis, " does not come out even"))
        .expected("a multiple of ", attrs.ranks)
        .got(extent);
  }
  extent = part;
  return whole;
}

Var call_in_group(Gradient& op, const char* name, const GroupAttrs& attrs) {
  return op.build().call(name, {op.upstream("y")},
                         {{"ranks", attrs.ranks}, {"stride", attrs.stride}, {"axis", attrs.axis}});
}

Tensor own_part(const Tensor& whole, const GroupAttrs& attrs, const Communicator& group) {
  const auto axis = static_cast<std::size_t>(attrs.axis);
  const std::int64_t extent = whole.shape()[axis] / attrs.ranks;
  return slice_of(whole, axis, extent * group.rank(), extent);
}

Tensor gathered(const Tensor& part, const GroupAttrs& attrs, Communicator& group) {
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < attrs.ranks; ++k) parts.emplace_back(part.dtype(), part.shape());
  std::vector<std::span<std::byte>> places;
  for (Tensor& one : parts) places.push_back(one.mutable_bytes());
  group.all_gather(part.bytes(), places);
  return join_along("all_gather", parts, static_cast<std::size_t>(attrs.axis));
}

void require_rank(std::string_view op, std::int64_t rank, const Communicator& ranks) {
  if (rank < ranks.size()) return;
  throw Error(concat(op, ": there is no rank ", rank), ErrorKind::Usage)
      .expected("0 to ", ranks.size() - 1);
}

void require_other_rank(std::string_view op, std::int64_t rank, const Communicator& ranks) {
  require_rank(op, rank, ranks);
  if (rank == ranks.rank())
    throw Error(concat(op, ": a rank has no messages for itself"), ErrorKind::Usage).got(rank);
}

}  // namespace tenon
