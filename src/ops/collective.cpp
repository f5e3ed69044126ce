#include "ops/collective.h"

#include "base/error.h"
#include "base/lockstep.h"

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
  static constexpr std::array<std::string_view, 6> names = {
      "all_gather", "all_reduce", "broadcast", "receive", "reduce_scatter", "send"};
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

void require_rank_count(Evaluation& op, std::int64_t count) {
  if (ranks_of(op).size() == count) return;
  throw Error(concat(op.op->name, ": the graph is for another number of ranks"), ErrorKind::Usage)
      .expected(count)
      .got(ranks_of(op).size());
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
