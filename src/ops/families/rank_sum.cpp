#include "ops/families/rank_sum.h"

#include "base/error.h"
#include "ir/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace tenon::inline ops {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;  // fits in L1
// smaller tensors are sent as messages
constexpr std::size_t kFewestShownBytes = std::size_t{16} << 10;

template <class T>
void add_plain(std::byte* y, const std::byte* a, const std::byte* b, std::size_t bytes) {
  auto* to = reinterpret_cast<T*>(y);
  const auto *left = reinterpret_cast<const T*>(a), *right = reinterpret_cast<const T*>(b);
  const std::size_t count = bytes / sizeof(T);
  for (std::size_t k = 0; k < count; ++k) to[k] = left[k] + right[k];
}

// Adds through tensors, which implement every type's rounding.
void add_by_element(DType dtype, std::byte* y, const std::byte* left, const std::byte* right,
                    std::size_t bytes) {
  const auto count =
      static_cast<std::int64_t>(bytes / static_cast<std::size_t>(info(dtype).storage_bytes));
  Tensor a(dtype, {count}), b(dtype, {count});
  std::memcpy(a.mutable_bytes().data(), left, bytes);
  std::memcpy(b.mutable_bytes().data(), right, bytes);
  for (std::int64_t k = 0; k < count; ++k) {
    if (is_float(dtype)) {
      a.set_real(k, a.real_at(k) + b.real_at(k));
    } else {
      a.set_integer(k, a.integer_at(k) + b.integer_at(k));
    }
  }
  std::memcpy(y, a.bytes().data(), bytes);
}

// y may alias a.
void add_two(DType dtype, std::byte* y, const std::byte* a, const std::byte* b, std::size_t bytes) {
  switch (dtype) {
    case DType::F32:
      return add_plain<float>(y, a, b, bytes);
    case DType::F64:
      return add_plain<double>(y, a, b, bytes);
    case DType::I64:
      return add_plain<std::uint64_t>(y, a, b, bytes);  // unsigned: sums wrap
    case DType::I32:
      return add_plain<std::uint32_t>(y, a, b, bytes);
    default:
      return add_by_element(dtype, y, a, b, bytes);
  }
}

class HostMemory : public RankMemory {
 public:
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    const std::size_t rounded =
        std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, rounded);
    return {memory, [](std::byte* pointer) { std::free(pointer); }};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
  }
  // Blocked, so that an accumulator that is added to again is still in L1.
  void add_in_order(DType dtype, std::span<std::byte> y,
                    std::span<const std::span<const std::byte>> terms) override {
    for (std::size_t begin = 0; begin < y.size(); begin += kBlockBytes) {
      const std::size_t bytes = std::min(kBlockBytes, y.size() - begin);
      std::byte* to = y.data() + begin;
      if (terms.size() == 1) {
        std::memcpy(to, terms[0].data() + begin, bytes);
        continue;
      }
      add_two(dtype, to, terms[0].data() + begin, terms[1].data() + begin, bytes);
      for (std::size_t k = 2; k < terms.size(); ++k)
        add_two(dtype, to, to, terms[k].data() + begin, bytes);
    }
  }
};

}  // namespace

RankMemory& host_memory() {
  static HostMemory memory;  // stateless
  return memory;
}

std::byte* RankScratch::at_least(std::size_t bytes) {
  if (bytes > bytes_ || !place_) {
    place_.reset();
    place_ = memory_.allocate(bytes);
    bytes_ = bytes;
  }
  return place_.get();
}

RankSum::RankSum(Communicator& ranks, DType dtype, std::size_t count, RankMemory& memory,
                 std::shared_ptr<RankScratch> scratch)
    : ranks_(ranks),
      memory_(memory),
      dtype_(dtype),
      count_(count),
      piece_bytes_(range_of(ranks.rank()).size),
      sum_(memory.allocate(range_of(0).size)),
      scratch_(scratch ? std::move(scratch) : std::make_shared<RankScratch>(memory)) {}

// Equal pieces; the last ones may be smaller or empty.
RankSum::Range RankSum::range_of(int rank) const {
  const auto size = static_cast<std::size_t>(ranks_.size());
  const std::size_t piece = (count_ + size - 1) / size;
  const std::size_t begin = std::min(count_, piece * static_cast<std::size_t>(rank));
  const auto bytes = static_cast<std::size_t>(info(dtype_).storage_bytes);
  return {begin * bytes, (std::min(count_, begin + piece) - begin) * bytes};
}

// Ranks with shared memory add directly from the other ranks' memory.
bool RankSum::is_shown() const {
  const std::size_t bytes = count_ * static_cast<std::size_t>(info(dtype_).storage_bytes);
  return bytes >= kFewestShownBytes && ranks_.size() > 1 && ranks_.may_see();
}

// `free` has room for the previous sum.
void RankSum::add_terms(std::vector<std::span<const std::byte>> terms, std::byte* free) {
  if (!std::exchange(is_empty_, false)) {
    memory_.copy(free, sum_.get(), piece_bytes_);
    terms.insert(terms.begin(), std::span<const std::byte>(free, piece_bytes_));
  }
  memory_.add_in_order(dtype_, {sum_.get(), piece_bytes_}, terms);
}

void RankSum::add(std::span<const std::byte> part) {
  const int size = ranks_.size(), mine = ranks_.rank();
  const Range own = range_of(mine);
  if (is_shown()) {
    if (const auto shown = ranks_.show({part})) {
      std::vector<std::span<const std::byte>> terms;
      for (const Communicator::Shown& one : *shown)
        terms.push_back(one.front().subspan(own.begin, own.size));
      add_terms(std::move(terms), is_empty_ ? nullptr : scratch_->at_least(piece_bytes_));
      return ranks_.hide();
    }
  }
  std::vector<std::span<const std::byte>> given(static_cast<std::size_t>(size));
  std::vector<std::span<std::byte>> taken(given.size());
  // The received pieces are followed by room for the previous sum.
  std::byte* others = scratch_->at_least(taken_bytes() + (is_empty_ ? 0 : piece_bytes_));
  std::size_t place = 0;
  for (int k = 0; k < size; ++k) {
    if (k == mine) continue;
    const Range range = range_of(k);
    given[static_cast<std::size_t>(k)] = part.subspan(range.begin, range.size);
    taken[static_cast<std::size_t>(k)] = {others + place, piece_bytes_};
    place += piece_bytes_;
  }
  ranks_.exchange(given, taken);
  std::vector<std::span<const std::byte>> terms(taken.begin(), taken.end());
  terms[static_cast<std::size_t>(mine)] = part.subspan(own.begin, own.size);
  add_terms(std::move(terms), others + taken_bytes());
}

void RankSum::take(std::span<std::byte> total) {
  std::vector<std::span<std::byte>> places;
  for (int k = 0; k < ranks_.size(); ++k) {
    const Range range = range_of(k);
    places.push_back(total.subspan(range.begin, range.size));
  }
  is_empty_ = true;
  if (is_shown()) {
    const auto mine = static_cast<std::size_t>(ranks_.rank());
    memory_.copy(places[mine].data(), sum_.get(), piece_bytes_);
    if (const auto shown = ranks_.show({total})) {
      for (std::size_t k = 0; k < places.size(); ++k) {
        if (k == mine) continue;
        const Range range = range_of(static_cast<int>(k));
        memory_.copy(places[k].data(), (*shown)[k].front().data() + range.begin, range.size);
      }
      return ranks_.hide();
    }
  }
  ranks_.all_gather(piece(), places);
}

}  // namespace tenon::inline ops
