// Winograd convolution F(2,3) and F(4,3): matches nests and estimates cost.
#include "base/error.h"
#include "codegen/cpu/winograd_nests.h"
#include "expr/access.h"
#include "nests/affine.h"
#include "nests/stride.h"

#include <algorithm>
#include <map>

namespace tenon::codegen::cpu {
namespace {

using nests::Affine;
using nests::Stride;

// The flat affine position of a load in its buffer.
std::optional<Affine> place_of(const Scalar& load) {
  Affine place;
  std::int64_t stride = 1;
  for (std::size_t axis = load->view.size(); axis-- > 0;) {
    const auto index = affine_of(load->args[axis]);
    if (!index || !load->view[axis].is_constant()) return std::nullopt;
    place.start += stride * index->start;
    for (const auto& [loop, step] : index->steps) place.steps[loop] += stride * step;
    stride *= load->view[axis].constant();
  }
  return place;
}

class WinogradMatcher {
 public:
  WinogradMatcher(const NestSequence::NestCall& part, const std::vector<bool>& is_constant)
      : part_(part), is_constant_(is_constant) {}

  FoundWindow run() {
    const auto sum = find_contraction(part_.nest);
    if (!sum || sum->reduction.size() != 3) return no("not a convolution with two spatial axes");
    for (const NestBuffer& buffer : part_.nest.buffers) {
      if (buffer.storage == StorageClass::Scratch)
        return no("its loops contain more than the contraction");
    }
    for (const auto* loops : {&sum->parallel, &sum->reduction}) {
      for (const Statement* loop : *loops) {
        loops_.emplace(loop->id, loop->extent);
        extents_[loop->id] = loop->extent.is_constant() ? loop->extent.constant() : kUnknown;
      }
    }
    found_.sum = *sum;
    std::string reason = "no operand has axes (output, channel, row, column)";
    for (const bool swaps : {false, true}) {
      found_.image = swaps ? sum->b : sum->a;
      if (!is_weight(swaps ? sum->a : sum->b)) continue;
      reason = "not a 3x3 window of stride 1";
      if (!is_image()) continue;
      reason = "channels are not contiguous in image and result, or do not fill vectors";
      if (is_channels_last()) return {found_, ""};
    }
    return no(reason);
  }

 private:
  static FoundWindow no(std::string reason) { return {std::nullopt, std::move(reason)}; }

  bool is_reduced(std::size_t loop) const {
    return std::any_of(found_.sum.reduction.begin(), found_.sum.reduction.end(),
                       [&](const Statement* statement) { return statement->id == loop; });
  }

  // Matches weights indexed by (output, channel, window row, window column) in any order.
  bool is_weight(const Scalar& load) {
    const std::size_t buffer = part_.buffers[load->id];
    const auto place = place_of(load);
    const bool is_constant = buffer < is_constant_.size() && is_constant_[buffer];
    if (load->bounds != Bounds::Inside || !place || (!is_constant && load->dtype != DType::F32))
      return false;
    found_.has_constant_weights = is_constant;
    weight_ = *place;
    found_.weights.source = buffer;
    int outputs = 0;
    for (const auto& [loop, step] : place->steps) {
      if (is_reduced(loop)) continue;
      found_.output = loop;
      ++outputs;
    }
    return outputs == 1 && place->steps.size() == 4;
  }

  bool is_image() {
    const Scalar& image = found_.image;
    if (image->bounds == Bounds::Checked) return false;
    const bool fills = image->bounds == Bounds::Fill;
    if (fills && (image->args.back()->kind != ScalarKind::Real || image->args.back()->real != 0))
      return false;
    std::size_t windows = 0, channels = 0, batches = 0;
    for (std::size_t axis = 0; axis < image->view.size(); ++axis) {
      const auto index = affine_of(image->args[axis]);
      if (!index) return false;
      for (const auto& [loop, step] : index->steps) {
        const bool is_apart = index->steps.size() == 2 && is_reduced(loop) && step != 0;
        if (step != 1 && !is_apart) return false;
      }
      if (index->steps.size() == 2) {
        std::size_t kept = index->steps.begin()->first, reduced = index->steps.rbegin()->first;
        if (is_reduced(kept)) std::swap(kept, reduced);
        if (is_reduced(kept) || !is_reduced(reduced) || extents_.at(reduced) != 3) return false;
        const bool is_row = windows++ == 0;
        (is_row ? found_.row : found_.column) = kept;
        (is_row ? found_.window_row : found_.window_column) = reduced;
        (is_row ? found_.rows : found_.columns) = loops_.at(kept);
        const std::int64_t step = index->steps.at(reduced);
        const bool flips = step < 0;
        (is_row ? found_.flips_rows : found_.flips_columns) = flips;
        (is_row ? found_.first_row : found_.first_column) = index->start + (flips ? 2 * step : 0);
        (is_row ? found_.row_step : found_.column_step) = std::abs(step);
        (is_row ? found_.image_rows : found_.image_columns) = image->view[axis];
      } else if (index->start != 0 || index->steps.size() > 1) {
        return false;
      } else if (index->steps.size() == 1) {
        const std::size_t loop = index->steps.begin()->first;
        if (is_reduced(loop)) {
          found_.channel = loop;
          ++channels;
        } else {
          found_.batch = loop;
          found_.batches = loops_.at(loop);
          ++batches;
        }
      }
    }
    if (windows != 2 || channels != 1 || batches > 1 || found_.row == found_.column ||
        found_.window_row == found_.window_column)
      return false;
    // The contraction has exactly these parallel loops.
    return found_.sum.parallel.size() == 3 + batches && found_.row != found_.output &&
           found_.column != found_.output &&
           (!found_.batch || (*found_.batch != found_.row && *found_.batch != found_.column &&
                              *found_.batch != found_.output));
  }

  // Requires channels last in the image and in the stored result.
  bool is_channels_last() {
    if (stride_along(found_.image, found_.channel) != Stride::Unit) return false;
    for (std::size_t k = 2; k < found_.sum.inner->size(); ++k) {
      const Statement& statement = (*found_.sum.inner)[k];
      if (statement.kind == Statement::Kind::Store &&
          stride_along(statement.indices, statement.view, found_.output) != Stride::Unit) {
        return false;
      }
    }
    WinogradWeights& weights = found_.weights;
    weights.channels = extents_.at(found_.channel);
    weights.outputs = extents_.at(found_.output);
    weights.base = weight_.start;
    const auto step = [&](std::size_t loop) {
      return weight_.steps.contains(loop) ? weight_.steps.at(loop) : 0;
    };
    weights.by_output = step(found_.output);
    weights.by_channel = step(found_.channel);
    weights.by_row = step(found_.window_row);
    weights.by_column = step(found_.window_column);
    if (found_.flips_rows) {
      weights.base += 2 * weights.by_row;
      weights.by_row = -weights.by_row;
    }
    if (found_.flips_columns) {
      weights.base += 2 * weights.by_column;
      weights.by_column = -weights.by_column;
    }
    if (!found_.has_constant_weights && weights.outputs % weights.columns != 0) return false;
    return weights.channels > 0 && weights.outputs > 0 && found_.tiles_hint() > 0;
  }

  const NestSequence::NestCall& part_;
  const std::vector<bool>& is_constant_;
  static constexpr std::int64_t kUnknown = -1;
  std::map<std::size_t, std::int64_t> extents_;
  std::map<std::size_t, Dim> loops_;
  WindowContraction found_;
  Affine weight_;
};

}  // namespace

FoundWindow find_window(const NestSequence::NestCall& part, const std::vector<bool>& is_constant) {
  return WinogradMatcher(part, is_constant).run();
}

namespace {

// Cycles per channel or output of a tile. Weights are read from memory: between two runs other
// layers evict them.
constexpr double kImageCost = 20, kResultCost = 16, kWeightCost = 20;
constexpr std::int64_t kEnoughBlocks = 8;

}  // namespace

double winograd_cost(const WindowContraction& window, const TargetFacts& facts) {
  const double weight_bytes = facts.bytes_per_cycle(facts.memory());
  const WinogradWeights& w = window.weights;
  const auto tiles = static_cast<double>(window.tiles_hint()),
             kinds = static_cast<double>(window.edge() * window.edge());
  const auto products = static_cast<double>(w.channels * window.blocked_outputs());
  const double share = kinds / 36;
  // Non-constant weights are transformed first: read, computed, written.
  const double making =
      window.has_constant_weights ? 0 : products * (share * kWeightCost + kinds * 4 / weight_bytes);
  // The next column block streams from memory while the current one is used.
  return making +
         kinds * products * std::max(tiles / facts.multiply_adds_per_cycle(), 4 / weight_bytes) +
         tiles * share *
             (kImageCost * static_cast<double>(w.channels) +
              kResultCost * static_cast<double>(w.outputs));
}

std::int64_t tiles_in_block(const WindowContraction& window) {
  const std::int64_t bytes =
      window.edge() * window.edge() * window.weights.channels * window.blocked_outputs() * 4;
  // Symbolic image extents: a small block suits few and many tiles.
  if (!window.has_fixed_images()) return 16;
  const std::int64_t wanted = bytes <= (4 << 20) ? 24 : 48;
  const std::int64_t blocks = (window.tiles_hint() + wanted - 1) / wanted;
  return blocks < kEnoughBlocks ? 0 : (window.tiles_hint() + blocks - 1) / blocks;
}

}  // namespace tenon::codegen::cpu
