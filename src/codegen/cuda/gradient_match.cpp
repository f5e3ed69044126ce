// Matches data and weight gradients of convolutions (contractions over transposed windows) for
// cuDNN.
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/library_match.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace tenon::codegen::cuda {
namespace {

using nests::Affine;
using nests::Contraction;

// Loops of a contraction by id.
struct Loops {
  std::map<std::size_t, const Statement*> parallel, reduction;
  explicit Loops(const Contraction& contraction) {
    for (const Statement* loop : contraction.parallel) parallel[loop->id] = loop;
    for (const Statement* loop : contraction.reduction) reduction[loop->id] = loop;
  }
};

// Returns the loop if the index is exactly that loop, else null.
const Statement* plain_loop(const Scalar& index,
                            const std::map<std::size_t, const Statement*>& of) {
  if (index->kind != ScalarKind::Loop) return nullptr;
  const auto found = of.find(index->id);
  return found == of.end() ? nullptr : found->second;
}

// Window parameters of one spatial axis of the forward convolution.
struct GradientWindow {
  std::int64_t size = 1, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t image = 0, result = 0;  // extents
  void finish() {
    after = std::max<std::int64_t>(
        0, (result - 1) * stride + (size - 1) * dilation + 1 - before - image);
  }
  bool is_sound() const {
    const std::int64_t span = (size - 1) * dilation + 1;
    return before >= 0 && before < span && after < span &&
           (image + before + after - span) / stride + 1 == result;
  }
};

std::vector<Dim> extents_of(const Dim& batch, const std::array<GradientWindow, 2>& windows,
                            const Dim& channels, const Dim& outputs) {
  const GradientWindow &rows = windows[0], &columns = windows[1];
  return {
      batch,         rows.image,  columns.image,  channels,      outputs,          rows.size,
      columns.size,  rows.result, columns.result, rows.before,   rows.after,       columns.before,
      columns.after, rows.stride, columns.stride, rows.dilation, columns.dilation, 1};
}

bool are_numbers(const Dims& view, std::size_t from) {
  return std::all_of(view.begin() + static_cast<std::ptrdiff_t>(from), view.end(),
                     [](const Dim& dim) { return dim.is_constant(); });
}

std::string store_refusal(const Contraction& contraction, const std::optional<Statement>& store) {
  if (!store) return "more than one result";
  if (!starts_from_zero((*contraction.inner)[0])) return "the accumulator does not start at zero";
  const Scalar* value = &store->value;
  while ((*value)->kind == ScalarKind::Cast) value = &(*value)->args[0];
  if ((*value)->kind != ScalarKind::Local || (*value)->id != (*contraction.inner)[0].id)
    return "the contraction has an epilogue";
  return "";
}

}  // namespace

LibraryMatch match_weight_gradient(const LoopNest& nest, const Contraction& contraction,
                                   ChannelPadding padding) {
  const std::optional<Statement> store = only_store(contraction);
  if (std::string why = store_refusal(contraction, store); !why.empty()) return refuse(why);
  LibraryMatch match;
  match.call.kind = LibraryCall::Kind::WeightGradient;
  if (std::string why = note_types(nest, contraction, *store, match.call); !why.empty())
    return refuse(why);
  if (match.call.result_dtype != match.call.dtype) return refuse("a result of another type");
  const Loops loops(contraction);
  // The output gradient is indexed by plain loops; batch, row and column are reduced.
  const auto reads_plainly = [&](const Scalar& load) {
    if (load->view.size() != 4 || load->bounds != Bounds::Inside) return false;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!plain_loop(load->args[axis], loops.reduction) && !(load->view[axis] == Dim(1)))
        return false;
    }
    return plain_loop(load->args[3], loops.parallel) != nullptr;
  };
  const bool is_a_gradient = reads_plainly(contraction.a) && !reads_plainly(contraction.b);
  if (!is_a_gradient && !reads_plainly(contraction.b))
    return refuse("no gradient of a convolution");
  const Scalar gradient = is_a_gradient ? contraction.a : contraction.b,
               image = is_a_gradient ? contraction.b : contraction.a;
  if (image->view.size() != 4 || !is_zero_outside(image)) return refuse("no image");
  if (!are_numbers(image->view, 1) || !are_numbers(gradient->view, 1))
    return refuse("images whose extents the run decides");
  const Statement *batch = plain_loop(gradient->args[0], loops.reduction),
                  *outputs = plain_loop(gradient->args[3], loops.parallel),
                  *channels = plain_loop(image->args[3], loops.parallel);
  const std::int64_t together = channel_granularity(match.call.dtype);
  const auto is_channel = [&](std::size_t axis) {
    return plain_loop(image->args[axis], loops.parallel) != nullptr ||
           (nests::is_integer(image->args[axis], 0) && image->view[axis] == Dim(1));
  };
  if (padding != ChannelPadding::Padded && is_channel(1) && !is_channel(3)) {
    LibraryMatch other = refuse("images whose channels are not last");
    other.image = image;
    other.image_order = {0, 2, 3, 1};
    const bool are_few = image->view[1].constant() < together;
    if (padding == ChannelPadding::Paddable && are_few) other.image_channels = together;
    return other;
  }
  const bool is_single = nests::is_integer(image->args[3], 0);  // a single channel without a loop
  if ((channels == nullptr && !is_single) || channels == outputs)
    return refuse("channels by themselves");
  const std::int64_t held = image->view[3].constant();
  const Dim count = channels == nullptr ? Dim(1) : channels->extent;
  if (padding == ChannelPadding::Paddable && count == image->view[3] && held < together) {
    LibraryMatch other = refuse("few channels");
    other.image = image;
    other.image_order = {0, 1, 2, 3};
    other.image_channels = together;
    return other;
  }
  const bool is_padded = padding == ChannelPadding::Padded && !(count == image->view[3]);
  if (!(count == image->view[3]) && !is_padded) return refuse("groups of channels");
  if (batch != nullptr && plain_loop(image->args[0], loops.reduction) != batch)
    return refuse("a batch with windows");
  std::set<std::size_t> used{outputs->id};
  for (const Statement* loop : {channels, batch}) {
    if (loop != nullptr) used.insert(loop->id);
  }
  std::array<GradientWindow, 2> windows;
  std::array<const Statement*, 2> inside{};
  for (const std::size_t k : {0U, 1U}) {
    const auto affine = nests::affine_of(image->args[k + 1]);
    const Statement* along = plain_loop(gradient->args[k + 1], loops.reduction);
    if (!affine || affine->start > 0) return refuse("windows that do not move evenly");
    GradientWindow& window = windows[k];
    window.image = image->view[k + 1].constant();
    window.result = gradient->view[k + 1].constant();
    window.before = -affine->start;
    for (const auto& [loop, step] : affine->steps) {
      if (step <= 0) return refuse("windows that run backwards");
      if (along != nullptr && loop == along->id) {
        window.stride = step;
      } else if (loops.parallel.contains(loop) && inside[k] == nullptr) {
        inside[k] = loops.parallel.at(loop);
        window.dilation = step;
        if (!inside[k]->extent.is_constant()) return refuse("windows whose size the run decides");
        window.size = inside[k]->extent.constant();
      } else {
        return refuse("windows of more than one loop");
      }
    }
    if (along != nullptr) used.insert(along->id);
    if (inside[k] != nullptr) used.insert(inside[k]->id);
    window.finish();
    if (!window.is_sound()) return refuse("windows that end before the edge");
  }
  if (used.size() != loops.parallel.size() + loops.reduction.size())
    return refuse("loops that move along no axis");
  // Weight layout: output, row, column, channel.
  std::vector<const Statement*> order{outputs};
  for (const Statement* loop : inside) {
    if (loop != nullptr) order.push_back(loop);
  }
  Dim piece = held;
  bool is_laid_so = starts_at_zero(store->indices, store->view.size());
  for (std::size_t k = order.size(); k-- > 0; piece = piece * order[k]->extent) {
    const auto step = distance(*store, order[k]->id);
    is_laid_so &= step && *step == piece;
  }
  if (channels != nullptr) is_laid_so &= distance(*store, channels->id) == Dim(1);
  if (!is_laid_so) {
    LibraryMatch other = refuse("weights that are laid out otherwise");
    if (channels != nullptr) order.push_back(channels);
    other.result_order = std::move(order);
    other.result_channels = is_padded ? held : 0;
    other.has_channel_loop = channels != nullptr;
    return other;
  }
  match.extents =
      extents_of(batch == nullptr ? Dim(1) : batch->extent, windows, Dim(held), outputs->extent);
  match.buffers = {image->id, gradient->id, store->id};
  return match;
}

LibraryMatch match_data_gradient(const LoopNest& nest, const Contraction& contraction) {
  const std::optional<Statement> store = only_store(contraction);
  if (std::string why = store_refusal(contraction, store); !why.empty()) return refuse(why);
  LibraryMatch match;
  match.call.kind = LibraryCall::Kind::DataGradient;
  if (std::string why = note_types(nest, contraction, *store, match.call); !why.empty())
    return refuse(why);
  if (match.call.result_dtype != match.call.dtype) return refuse("a result of another type");
  const Loops loops(contraction);
  // The result's innermost loop runs along its channels; the weights move with it.
  const Statement* channels = nullptr;
  for (const Statement* loop : contraction.parallel) {
    const auto step = distance(*store, loop->id);
    if (step && *step == Dim(1)) channels = loop;
  }
  if (channels == nullptr) return refuse("a result whose channels are not last");
  const bool is_a_weights = nests::depends_on(contraction.a, channels->id);
  const Scalar weights = is_a_weights ? contraction.a : contraction.b,
               gradient = is_a_weights ? contraction.b : contraction.a;
  if (nests::depends_on(gradient, channels->id)) return refuse("channels by themselves");
  if (gradient->view.size() != 4 || weights->view.size() != 4 || !is_zero_outside(gradient) ||
      !is_zero_outside(weights))
    return refuse("no gradient of a convolution");
  if (!are_numbers(gradient->view, 1) || !are_numbers(weights->view, 0))
    return refuse("images whose extents the run decides");
  const Statement *batch = plain_loop(gradient->args[0], loops.parallel),
                  *outputs = plain_loop(gradient->args[3], loops.reduction);
  if (outputs == nullptr) return refuse("images whose channels are not last");
  if (batch == nullptr && !(gradient->view[0] == Dim(1))) return refuse("a batch with windows");
  // axes of the weights: output, row, column, channel
  std::array<std::size_t, 4> axes = {4, 4, 4, 4};
  std::vector<std::size_t> others;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const Scalar& at = weights->args[axis];
    if (at->kind == ScalarKind::Loop && at->id == outputs->id) {
      axes[0] = axis;
    } else if (at->kind == ScalarKind::Loop && at->id == channels->id) {
      axes[3] = axis;
    } else {
      others.push_back(axis);
    }
  }
  if (others.size() != 2) return refuse("weights that do not lie evenly");
  std::set<std::size_t> used{channels->id, outputs->id};
  if (batch != nullptr) used.insert(batch->id);
  std::array<GradientWindow, 2> windows;
  Dim piece = channels->extent;
  std::array<bool, 2> is_met{};
  for (const std::size_t k : {1U, 0U}) {
    const auto at = nests::affine_of(gradient->args[k + 1]);
    if (!at) return refuse("windows that do not move evenly");
    const Statement *along = nullptr, *phase = nullptr, *window_loop = nullptr;
    for (const auto& [loop, step] : at->steps) {
      if (loops.reduction.contains(loop)) {
        if (step != -1 || window_loop != nullptr) return refuse("windows that run forwards");
        window_loop = loops.reduction.at(loop);
      } else if (along == nullptr) {
        along = loops.parallel.at(loop);
      } else if (phase == nullptr) {
        phase = loops.parallel.at(loop);
      } else {
        return refuse("windows of more than two loops");
      }
    }
    if (along == nullptr) return refuse("windows that do not move");
    // Two loops on one axis: the outer is the loop with the larger stride in the result.
    if (phase != nullptr) {
      const auto a = distance(*store, along->id), b = distance(*store, phase->id);
      if (!a || !b || !a->is_constant() || !b->is_constant()) return refuse("uneven results");
      if (a->constant() < b->constant()) std::swap(along, phase);
    } else {
      // Phases of a strided gradient may appear in the weights alone.
      for (const auto& [id, loop] : loops.parallel) {
        if (used.contains(id) || id == along->id) continue;
        const auto step = distance(*store, id), outer = distance(*store, along->id);
        if (step && outer && loop->extent.is_constant() && *step == piece &&
            *outer == piece * loop->extent)
          phase = loop;
      }
    }
    GradientWindow& window = windows[k];
    window.stride = phase == nullptr ? 1 : phase->extent.constant();
    const auto along_step = distance(*store, along->id);
    if (!along_step || !(*along_step == piece * Dim(window.stride)) ||
        at->steps.at(along->id) != 1 || !along->extent.is_constant())
      return refuse("a result that is not in one piece");
    if (phase != nullptr && !(distance(*store, phase->id) == piece))
      return refuse("a result that is not in one piece");
    const std::int64_t by_phase =
        phase != nullptr && at->steps.contains(phase->id) ? at->steps.at(phase->id) : 0;
    // Find the matching axis of the weights.
    bool is_found = false;
    for (const std::size_t j : {k, 1 - k}) {
      if (is_found) break;
      const auto weight = nests::affine_of(weights->args[others[j]]);
      if (!weight || is_met[j]) continue;
      const auto step_of = [&](const Statement* loop) -> std::int64_t {
        const auto step = loop == nullptr ? weight->steps.end() : weight->steps.find(loop->id);
        return step == weight->steps.end() ? 0 : step->second;
      };
      const std::size_t known = (window_loop != nullptr && step_of(window_loop) != 0 ? 1U : 0U) +
                                (phase != nullptr && step_of(phase) != 0 ? 1U : 0U);
      if (weight->steps.size() != known) continue;
      if (window_loop != nullptr && step_of(window_loop) != window.stride) continue;
      // Image row y meets result row m at tap k where y + before = m * stride + k, for all loop
      // values.
      if (phase != nullptr && window.stride * by_phase + step_of(phase) != 1) continue;
      is_found = is_met[j] = true;
      axes[k + 1] = others[j];
      window.before = window.stride * at->start + weight->start;
      window.size = weights->view[others[j]].constant();
      const std::int64_t passes = window_loop == nullptr ? 1
                                  : window_loop->extent.is_constant()
                                      ? window_loop->extent.constant()
                                      : 0;
      if (passes != (window.size + window.stride - 1) / window.stride)
        return refuse("windows that are not whole");
    }
    if (!is_found) return refuse("weights that do not move with the windows");
    window.image = along->extent.constant() * window.stride;
    window.result = gradient->view[k + 1].constant();
    window.finish();
    if (!window.is_sound()) return refuse("windows that end before the edge");
    for (const Statement* loop : {along, phase, window_loop}) {
      if (loop != nullptr) used.insert(loop->id);
    }
    piece = piece * Dim(window.image);
  }
  if (used.size() != loops.parallel.size() + loops.reduction.size())
    return refuse("loops that move along no axis");
  if (batch != nullptr && !(distance(*store, batch->id) == piece))
    return refuse("a result that is not in one piece");
  if (!starts_at_zero(store->indices, store->view.size()))
    return refuse("a result that is not in one piece");
  if (axes != std::array<std::size_t, 4>{0, 1, 2, 3}) {
    LibraryMatch other = refuse("weights that are laid out otherwise");
    other.image = weights;
    other.image_order.assign(axes.begin(), axes.end());
    return other;
  }
  match.extents = extents_of(batch == nullptr ? Dim(1) : batch->extent, windows, channels->extent,
                             outputs->extent);
  match.buffers = {gradient->id, weights->id, store->id};
  return match;
}

}  // namespace tenon::codegen::cuda
