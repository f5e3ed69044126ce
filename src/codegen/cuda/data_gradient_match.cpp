// Data gradients of convolutions (transposed convolutions): contractions whose windows run
// backwards. A strided gradient computes each phase of the stride by its own taps.
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "codegen/cuda/window_match.h"
#include "nests/affine.h"
#include "nests/stride.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

using nests::Affine;
using nests::Contraction;

std::int64_t step_of(const Affine& affine, const Statement* loop) {
  const auto step = loop == nullptr ? affine.steps.end() : affine.steps.find(loop->id);
  return step == affine.steps.end() ? 0 : step->second;
}

bool are_numbers(const Dims& view, std::ptrdiff_t from) {
  return std::all_of(view.begin() + from, view.end(),
                     [](const Dim& dim) { return dim.is_constant(); });
}

// Loops along one axis of the gradient: y = along * stride + phase of the image meets row along -
// window + start of the gradient.
struct BackwardAxis {
  const Statement *along = nullptr, *phase = nullptr, *window = nullptr;
  Affine at;

  std::int64_t stride() const { return phase == nullptr ? 1 : phase->extent.constant(); }
};

class DataGradientMatcher {
 public:
  DataGradientMatcher(const Contraction& contraction, const Statement& store)
      : contraction_(contraction),
        store_(store),
        parallel_(by_id(contraction.parallel)),
        reduction_(by_id(contraction.reduction)) {}

  WindowMatch run() {
    if (find_factors() && find_weight_axes() && match_axis(1) && match_axis(0)) check_loops();
    if (match_.refusal.empty() && axes_ != std::array<std::size_t, 4>{0, 1, 2, 3}) {
      refuse("weights that are laid out otherwise");
      match_.request.load = match_.other;
      match_.request.axes.assign(axes_.begin(), axes_.end());
    }
    return std::move(match_);
  }

 private:
  bool refuse(std::string why) {
    match_.refusal = std::move(why);
    return false;
  }
  bool has_step(const Statement& loop, const Dim& step) const {
    const auto found = distance(store_, loop.id);
    return found && *found == step;
  }

  // The result's innermost loop runs along its channels; the weights move with it.
  bool find_factors() {
    for (const Statement* loop : contraction_.parallel) {
      if (has_step(*loop, 1)) match_.channels = loop;
    }
    if (match_.channels == nullptr) return refuse("a result whose channels are not last");
    const bool is_a_weights = nests::depends_on(contraction_.a, match_.channels->id);
    const Scalar &weights = is_a_weights ? contraction_.a : contraction_.b,
                 &gradient = is_a_weights ? contraction_.b : contraction_.a;
    match_.image = gradient;
    match_.other = weights;
    if (nests::depends_on(gradient, match_.channels->id)) return refuse("channels by themselves");
    if (gradient->view.size() != 4 || weights->view.size() != 4 || !is_zero_outside(gradient) ||
        !is_zero_outside(weights))
      return refuse("no gradient of a convolution");
    if (!are_numbers(gradient->view, 1) || !are_numbers(weights->view, 0) ||
        !match_.channels->extent.is_constant())
      return refuse("images whose extents the run decides");
    match_.batch = plain_loop(gradient->args[0], parallel_);
    match_.outputs = plain_loop(gradient->args[3], reduction_);
    if (match_.outputs == nullptr) return refuse("images whose channels are not last");
    if (match_.batch == nullptr && !(gradient->view[0] == Dim(1)))
      return refuse("a batch with windows");
    match_.output_count = match_.outputs->extent;
    match_.channel_count = match_.channels->extent.constant();
    piece_ = match_.channels->extent;
    used_ = {match_.channels->id, match_.outputs->id};
    if (match_.batch != nullptr) {
      match_.batch_count = match_.batch->extent;
      used_.insert(match_.batch->id);
    }
    return true;
  }

  // Axes of the weights along outputs and channels; the two others are windows.
  bool find_weight_axes() {
    for (std::size_t axis = 0; axis < 4; ++axis) {
      const Scalar& at = match_.other->args[axis];
      const bool is_loop = at->kind == ScalarKind::Loop;
      if (is_loop && at->id == match_.outputs->id) {
        axes_[0] = axis;
      } else if (is_loop && at->id == match_.channels->id) {
        axes_[3] = axis;
      } else {
        windows_.push_back(axis);
      }
    }
    return windows_.size() == 2 || refuse("weights that do not lie evenly");
  }

  bool find_loops(std::size_t k, BackwardAxis& axis) {
    const auto at = nests::affine_of(match_.image->args[k + 1]);
    if (!at) return refuse("windows that do not move evenly");
    axis.at = *at;
    for (const auto& [loop, step] : at->steps) {
      if (reduction_.contains(loop)) {
        if (step != -1 || axis.window != nullptr) return refuse("windows that run forwards");
        axis.window = reduction_.at(loop);
      } else if (axis.along == nullptr) {
        axis.along = parallel_.at(loop);
      } else if (axis.phase == nullptr) {
        axis.phase = parallel_.at(loop);
      } else {
        return refuse("windows of more than two loops");
      }
    }
    return axis.along != nullptr || refuse("windows that do not move");
  }

  // Of two loops along one axis, the outer is the loop with the larger stride in the result. Phases
  // may appear in the weights alone.
  bool find_phase(BackwardAxis& axis) {
    const auto outer = distance(store_, axis.along->id);
    if (axis.phase != nullptr) {
      const auto inner = distance(store_, axis.phase->id);
      if (!outer || !inner || !outer->is_constant() || !inner->is_constant())
        return refuse("uneven results");
      if (outer->constant() < inner->constant()) std::swap(axis.along, axis.phase);
    } else {
      for (const auto& [id, loop] : parallel_) {
        if (used_.contains(id) || id == axis.along->id || !loop->extent.is_constant()) continue;
        if (has_step(*loop, piece_) && outer && *outer == piece_ * loop->extent) axis.phase = loop;
      }
    }
    if (axis.phase != nullptr &&
        (!axis.phase->extent.is_constant() || !has_step(*axis.phase, piece_)))
      return refuse("a result that is not in one piece");
    const bool is_whole = has_step(*axis.along, piece_ * Dim(axis.stride())) &&
                          step_of(axis.at, axis.along) == 1 && axis.along->extent.is_constant();
    return is_whole || refuse("a result that is not in one piece");
  }

  // Finds the axis of the weights on which row y + before = row * stride + tap, for all values of
  // the loops.
  bool find_taps(std::size_t k, const BackwardAxis& axis, WindowAxis& made) {
    for (const std::size_t j : {k, 1 - k}) {
      const auto weight = nests::affine_of(match_.other->args[windows_[j]]);
      if (!weight || std::ranges::find(axes_, windows_[j]) != axes_.end()) continue;
      const std::int64_t of_window = step_of(*weight, axis.window),
                         of_phase = step_of(*weight, axis.phase);
      const std::size_t known = (of_window != 0 ? 1U : 0U) + (of_phase != 0 ? 1U : 0U);
      if (weight->steps.size() != known) continue;
      if (axis.window != nullptr && of_window != made.stride) continue;
      if (axis.phase != nullptr && made.stride * step_of(axis.at, axis.phase) + of_phase != 1)
        continue;
      axes_[k + 1] = windows_[j];
      made.before = made.stride * axis.at.start + weight->start;
      made.taps = match_.other->view[windows_[j]].constant();
      const Dim passes = axis.window == nullptr ? Dim(1) : axis.window->extent;
      return passes == Dim((made.taps + made.stride - 1) / made.stride) ||
             refuse("windows that are not whole");
    }
    return refuse("weights that do not move with the windows");
  }

  bool match_axis(std::size_t k) {
    BackwardAxis axis;
    if (!find_loops(k, axis) || !find_phase(axis)) return false;
    WindowAxis& made = match_.axes[k];
    made.stride = axis.stride();
    if (!find_taps(k, axis, made)) return false;
    made.image = axis.along->extent * Dim(made.stride);
    made.result = match_.image->view[k + 1];
    if (std::string why = fit_padding(made); !why.empty()) return refuse(std::move(why));
    for (const Statement* loop : {axis.along, axis.phase, axis.window}) {
      if (loop != nullptr) used_.insert(loop->id);
    }
    piece_ = piece_ * made.image;
    return true;
  }

  void check_loops() {
    if (used_.size() != parallel_.size() + reduction_.size()) {
      refuse("loops that move along no axis");
    } else if ((match_.batch != nullptr && !has_step(*match_.batch, piece_)) ||
               !starts_at_zero(store_.indices, store_.view.size())) {
      refuse("a result that is not in one piece");
    }
  }

  const Contraction& contraction_;
  const Statement& store_;
  const LoopMap parallel_, reduction_;
  std::set<std::size_t> used_;
  Dim piece_ = 1;  // elements of the result per position of the axis
  // Axes of the weights: output, row, column, channel; and those of the windows.
  std::array<std::size_t, 4> axes_ = {4, 4, 4, 4};
  std::vector<std::size_t> windows_;
  WindowMatch match_;
};

}  // namespace

WindowMatch match_data_gradient_windows(const Contraction& contraction, const Statement& store) {
  return DataGradientMatcher(contraction, store).run();
}

}  // namespace tenon::codegen::cuda
