#include "host/kernels/list.h"
#include "host/kernels/parallel.h"
#include "host/kernels/radix_sort.h"
#include "host/kernels/vector_level.h"

#include <array>
#include <limits>
#include <optional>

namespace tenon::inline host {
namespace {

using Score = FloatOrder<float, std::uint32_t>;
using Item = Keyed<Score::Key>;

constexpr std::size_t kLanes = 8;

// Same precision (double) as the reference.
struct CornerBox {
  double top, left, bottom, right;
  double area = (bottom - top) * (right - left);
};

CornerBox box_at(const float* given, bool is_center) {
  const double a = given[0], b = given[1], c = given[2], d = given[3];
  if (is_center) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

// Boxes in structure-of-arrays layout, one vector of lanes at a time.
struct ScoreLanes {
  std::array<double, kLanes> top, left, bottom, right, area;

  void set(std::size_t lane, const CornerBox& box) {
    top[lane] = box.top;
    left[lane] = box.left;
    bottom[lane] = box.bottom;
    right[lane] = box.right;
    area[lane] = box.area;
  }
};

// Bit-identical to the reference.
bool overlap_too_much(const CornerBox& box, const ScoreLanes& kept, std::size_t lane,
                      double limit) {
  const double height = std::min(box.bottom, kept.bottom[lane]) - std::max(box.top, kept.top[lane]);
  const double width = std::min(box.right, kept.right[lane]) - std::max(box.left, kept.left[lane]);
  double overlap = 0;
  if (height > 0 && width > 0) {
    const double shared = height * width, joint = box.area + kept.area[lane] - shared;
    overlap = joint > 0 ? shared / joint : 0;
  }
  return !(overlap <= limit);
}

// Returns the first lanes with a box whose overlap may exceed the limit, else `end`. The test
// avoids the division and therefore rounds differently: `limit` is slightly below the real limit.
TENON_INLINE const ScoreLanes* next_overlap(const CornerBox& box, const ScoreLanes* kept,
                                            const ScoreLanes* end, double limit) {
  for (; kept != end; ++kept) {
    std::uint64_t found = 0;
    for (std::size_t k = 0; k < kLanes; ++k) {
      const double lower = kept->bottom[k] < box.bottom ? kept->bottom[k] : box.bottom;
      const double upper = kept->top[k] > box.top ? kept->top[k] : box.top;
      const double far = kept->right[k] < box.right ? kept->right[k] : box.right;
      const double near = kept->left[k] > box.left ? kept->left[k] : box.left;
      const double height = lower - upper, width = far - near, shared = height * width;
      const bool meets = (height > 0) & (width > 0);
      const bool is_much = !(shared <= limit * (box.area + kept->area[k] - shared));
      found |= (meets & is_much) ? std::uint64_t{1} : std::uint64_t{0};
    }
    if (found != 0) break;
  }
  return kept;
}
TENON_AVX2 const ScoreLanes* next_overlap_avx2(const CornerBox& box, const ScoreLanes* kept,
                                               const ScoreLanes* end, double limit) {
  return next_overlap(box, kept, end, limit);
}
TENON_AVX512 const ScoreLanes* next_overlap_avx512(const CornerBox& box, const ScoreLanes* kept,
                                                   const ScoreLanes* end, double limit) {
  return next_overlap(box, kept, end, limit);
}
const ScoreLanes* next_overlap_plain(const CornerBox& box, const ScoreLanes* kept,
                                     const ScoreLanes* end, double limit) {
  return next_overlap(box, kept, end, limit);
}

struct KernelLimits {
  double max_boxes, overlap, score;
  bool is_center;
};

// Greedy non-maximum suppression of one class: sorts candidates by score and keeps those that
// overlap no better box.
class Suppressor {
 public:
  // `items` has space for two entries per box, `kept` for the lanes of the maximum number of boxes.
  Suppressor(const KernelLimits& limits, std::size_t count, Item* items, ScoreLanes* kept)
      : limits_(limits), count_(count), items_(items), kept_(kept) {}

  void find(const float* boxes, const float* scores, std::vector<std::int64_t>& numbers) {
    for (const Item& item : candidates(scores)) {
      if (static_cast<double>(numbers.size()) >= limits_.max_boxes) break;
      const CornerBox box = box_at(boxes + 4 * item.position(), limits_.is_center);
      if (is_suppressed(box, numbers.size())) continue;
      keep(box, numbers.size());
      numbers.push_back(static_cast<std::int64_t>(item.position()));
    }
  }

 private:
  std::span<const Item> candidates(const float* scores) {
    constexpr std::size_t kBlock = 64;
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < count_; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, count_);
      unsigned is_any = 0;  // most boxes score too low for this class
      for (std::size_t k = begin; k < end; ++k) is_any |= scores_enough(scores[k]) ? 1u : 0u;
      if (is_any == 0) continue;
      for (std::size_t k = begin; k < end; ++k) {
        items_[found] = Item(~Score::key(scores[k]), k);
        found += scores_enough(scores[k]) ? 1 : 0;
      }
    }
    return radix_sort(std::span(items_, found), std::span(items_ + count_, found));
  }
  bool scores_enough(float score) const { return static_cast<double>(score) > limits_.score; }

  bool is_suppressed(const CornerBox& box, std::size_t kept_count) const {
    const ScoreLanes* end = kept_ + (kept_count + kLanes - 1) / kLanes;
    for (const ScoreLanes* at = next_overlap_(box, kept_, end, near_limit_); at != end;
         at = next_overlap_(box, at + 1, end, near_limit_)) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if (overlap_too_much(box, *at, lane, limits_.overlap)) return true;
      }
    }
    return false;
  }

  void keep(const CornerBox& box, std::size_t at) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    ScoreLanes& lanes = kept_[at / kLanes];
    if (at % kLanes == 0) {  // empty lanes overlap no box
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes.set(lane, {kFar, kFar, -kFar, -kFar});
    }
    lanes.set(at % kLanes, box);
  }

  const KernelLimits& limits_;
  double near_limit_ = limits_.overlap * (1 - 1e-12);
  decltype(&next_overlap_plain) next_overlap_ =
      for_this_processor(next_overlap_avx512, next_overlap_avx2, next_overlap_plain);
  std::size_t count_;
  Item* items_;
  ScoreLanes* kept_;
};

// Returns the element of a scalar operand; nullopt if the operand has another size.
std::optional<double> scalar(const HostCall& call, std::size_t position, double otherwise) {
  const Tensor* tensor = call.operand(position);
  if (tensor == nullptr) return otherwise;
  return tensor->size() == 1 ? std::optional(tensor->real_at(0)) : std::nullopt;
}

}  // namespace

bool non_max_suppression_kernel(const HostCall& call) {
  const Tensor &boxes = *call.operand(0), &scores = *call.operand(1);
  if (boxes.dtype() != DType::F32 || scores.dtype() != DType::F32 || scores.rank() != 3)
    return false;
  const std::int64_t batches = scores.shape()[0], classes = scores.shape()[1],
                     count = scores.shape()[2];
  if (boxes.shape() != Shape{batches, count, 4} || count > kMaxKeyed) return false;
  const std::optional<double> max_boxes = scalar(call, 2, 0), overlap = scalar(call, 3, 0);
  const std::optional<double> least = scalar(call, 4, -std::numeric_limits<double>::infinity());
  // A negative limit would suppress boxes without overlap.
  if (!max_boxes || !overlap || !least || !(*overlap >= 0) || !(*max_boxes >= 0)) return false;
  const KernelLimits limits{*max_boxes, *overlap, *least, call.flag("center_point_box", false)};
  const double most = std::clamp(*max_boxes, 0.0, static_cast<double>(count));
  const PerThread<Item> items(call, 2 * count);
  const PerThread<ScoreLanes> lanes(
      call, static_cast<std::int64_t>(most) / static_cast<std::int64_t>(kLanes) + 2);
  std::vector<std::vector<std::int64_t>> kept(static_cast<std::size_t>(batches * classes));
  const std::int64_t chunk = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, count));
  for_each_part(batches * classes, chunk, call.thread_count,
                [&](std::size_t thread, std::int64_t begin, std::int64_t end) {
                  Suppressor suppressor(limits, static_cast<std::size_t>(count), items[thread],
                                        lanes[thread]);
                  for (; begin < end; ++begin)
                    suppressor.find(boxes.as<float>().data() + begin / classes * count * 4,
                                    scores.as<float>().data() + begin * count,
                                    kept[static_cast<std::size_t>(begin)]);
                });
  std::int64_t rows = 0;
  for (const auto& numbers : kept) rows += std::ssize(numbers);
  auto* y = call.result<std::int64_t>(0, {rows, 3});
  for (std::int64_t k = 0; y != nullptr && k < batches * classes; ++k) {
    for (const std::int64_t number : kept[static_cast<std::size_t>(k)]) {
      *y++ = k / classes;
      *y++ = k % classes;
      *y++ = number;
    }
  }
  return true;
}

}  // namespace tenon::inline host
