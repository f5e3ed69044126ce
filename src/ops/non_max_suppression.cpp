#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tenon::inline ops::non_max_suppression_op {
namespace {

struct Attrs {
  bool center_point_box = false;
};

struct Box {
  double top, left, bottom, right;
  double area = (bottom - top) * (right - left);
};

TensorType infer(const Attrs&, const OperandTypes& in) {
  require_rank("non_max_suppression", "boxes", in["boxes"], 3);
  require_rank("non_max_suppression", "scores", in["scores"], 3);
  if (!assume_equal(in["boxes"].dims[1], in["scores"].dims[2]) ||
      !assume_equal(in["boxes"].dims[0], in["scores"].dims[0]) ||
      !assume_equal(in["boxes"].dims[2], 4)) {
    throw Error("non_max_suppression: boxes and scores do not fit together")
        .expected("boxes [batches, boxes, 4] and scores [batches, classes, boxes]")
        .got(in["boxes"], " and ", in["scores"]);
  }
  return {DType::I64, {in.unknown(), 3}, {}};
}

// Corners may be in any order; a centre comes with width and height.
Box box_at(const Attrs& attrs, const Tensor& boxes, std::int64_t index) {
  const double a = boxes.real_at(index * 4), b = boxes.real_at(index * 4 + 1);
  const double c = boxes.real_at(index * 4 + 2), d = boxes.real_at(index * 4 + 3);
  if (attrs.center_point_box) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

// Early exit for disjoint boxes, which are the majority.
double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return 0;
  const double shared = height * width, joint = a.area + b.area - shared;
  return joint > 0 ? shared / joint : 0;
}

double scalar_or(const Evaluation& op, std::string_view operand, double otherwise) {
  if (!op.has(operand)) return otherwise;
  const Tensor& tensor = op.tensor(operand);
  if (tensor.size() != 1) {
    throw Error(concat("non_max_suppression: ", operand, " must be one element"))
        .got(tensor.type());
  }
  return tensor.real_at(0);
}

struct SuppressionLimits {
  double max_boxes, overlap, score;
};

struct BoxCandidate {
  double score;
  std::int64_t box;
};

// Boxes of a class above the score threshold: element `first` of the scores belongs to box 0.
template <class ScoreAt>
std::vector<BoxCandidate> candidates_in(std::int64_t first, std::int64_t count, double least,
                                        const ScoreAt& score_at) {
  std::vector<BoxCandidate> candidates;
  for (std::int64_t box = 0; box < count; ++box) {
    const double score = score_at(first + box);
    if (score > least) candidates.push_back({score, box});
  }
  return candidates;
}

// Greedy non-maximum suppression: keeps the best remaining box that does not overlap a kept one too
// much. A heap avoids sorting candidates that are never reached.
std::vector<std::int64_t> kept_boxes(const std::vector<Box>& boxes,
                                     std::vector<BoxCandidate> candidates,
                                     const SuppressionLimits& limits) {
  const auto is_worse = [](const BoxCandidate& a, const BoxCandidate& b) {
    return a.score != b.score ? a.score < b.score : a.box > b.box;
  };
  std::make_heap(candidates.begin(), candidates.end(), is_worse);
  std::vector<std::int64_t> kept;
  while (!candidates.empty() && static_cast<double>(kept.size()) < limits.max_boxes) {
    std::pop_heap(candidates.begin(), candidates.end(), is_worse);
    const BoxCandidate candidate = candidates.back();
    candidates.pop_back();
    const Box& box = boxes[static_cast<std::size_t>(candidate.box)];
    const bool is_free = std::all_of(kept.begin(), kept.end(), [&](std::int64_t other) {
      return overlap(box, boxes[static_cast<std::size_t>(other)]) <= limits.overlap;
    });
    if (is_free) kept.push_back(candidate.box);
  }
  return kept;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor &boxes = op.tensor("boxes"), &scores = op.tensor("scores");
  const SuppressionLimits limits{
      scalar_or(op, "max_boxes_per_class", 0), scalar_or(op, "iou_threshold", 0),
      scalar_or(op, "score_threshold", -std::numeric_limits<double>::infinity())};
  const std::int64_t batches = scores.shape().at(0), classes = scores.shape().at(1);
  const std::int64_t count = scores.shape().at(2);
  if (boxes.shape() != Shape{batches, count, 4}) {
    throw Error("non_max_suppression: boxes and scores do not fit together")
        .got(boxes.type(), " and ", scores.type());
  }
  std::vector<std::int64_t> picked;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    std::vector<Box> candidates;
    for (std::int64_t box = 0; box < count; ++box) {
      candidates.push_back(box_at(attrs, boxes, batch * count + box));
    }
    for (std::int64_t label = 0; label < classes; ++label) {
      const std::int64_t first = (batch * classes + label) * count;
      std::vector<BoxCandidate> found;
      if (scores.dtype() == DType::F32) {  // the most frequent case
        const auto numbers = scores.as<float>();
        found = candidates_in(first, count, limits.score, [&](std::int64_t k) {
          return static_cast<double>(numbers[static_cast<std::size_t>(k)]);
        });
      } else {
        found = candidates_in(first, count, limits.score,
                              [&](std::int64_t k) { return scores.real_at(k); });
      }
      for (std::int64_t box : kept_boxes(candidates, std::move(found), limits)) {
        picked.insert(picked.end(), {batch, label, box});
      }
    }
  }
  const auto rows = static_cast<std::int64_t>(picked.size() / 3);
  op.set("y", Tensor::of_integers(picked).reshaped({rows, 3}));
}

}  // namespace

TENON_DEFINE_OP(non_max_suppression) = OpSpec<Attrs>{
    .name = "non_max_suppression",
    .summary =
        "the best boxes of each batch and class as rows [batch, class, box], best first, without "
        "those "
        "that overlap a better one by more than `iou_threshold` or score `score_threshold` or less",
    .operands = {"boxes", "scores", optional("max_boxes_per_class"), optional("iou_threshold"),
                 optional("score_threshold")},
    .results = {"y"},
    .attrs = {{"center_point_box", &Attrs::center_point_box}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it picks indices"),
    .layout = logical_order(),
    .examples = {"boxes: f32 1 b 4; scores: f32 1 c b; max_boxes_per_class: i64"},
};

}  // namespace tenon::inline ops::non_max_suppression_op
