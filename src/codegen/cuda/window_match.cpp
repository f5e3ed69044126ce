// Convolutions and their weight gradients: one description of windows, channels and groups for all
// kernels.
#include "codegen/cuda/window_match.h"

#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"
#include "nests/stride.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tenon::codegen::cuda {
namespace {

using nests::Contraction;

Dim extent_of(const Statement* loop) { return loop == nullptr ? Dim(1) : loop->extent; }

// True if an image is read at positions of two loops, one of the result and one of the window, that
// both move forward. In the gradient by an image, windows move backward.
bool has_window(const Scalar& load) {
  return std::any_of(
      load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()),
      [](const Scalar& index) {
        const auto affine = nests::affine_of(index);
        return affine && affine->steps.size() > 1 &&
               std::ranges::all_of(affine->steps, [](const auto& step) { return step.second > 0; });
      });
}

// Returns the parallel loop along which only the weights of a convolution move, its output
// channels.
const Statement* output_loop(const Contraction& contraction) {
  const bool is_a_image = has_window(contraction.a);
  if (is_a_image == has_window(contraction.b)) return nullptr;
  const Scalar &image = is_a_image ? contraction.a : contraction.b,
               &weights = is_a_image ? contraction.b : contraction.a;
  const Statement* found = nullptr;
  for (const Statement* loop : contraction.parallel) {
    if (nests::depends_on(image, loop->id) || !nests::depends_on(weights, loop->id)) continue;
    if (found != nullptr) return nullptr;
    found = loop;
  }
  return found;
}

// Returns a read of a one-dimensional image (batch, position, channel) as one of an image with a
// single column.
Scalar with_unit_column(const Scalar& image) {
  ScalarNode node = image.node();
  node.view.insert(node.view.begin() + 2, Dim(1));
  node.args.insert(node.args.begin() + 2, integer_scalar(0));
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

// A tensor as a contraction accesses it.
struct Access {
  std::vector<Scalar> indices;
  Dims view;

  explicit Access(const Scalar& load)
      : indices(load->args.begin(),
                load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size())),
        view(load->view) {}
  explicit Access(const Statement& store) : indices(store.indices), view(store.view) {}

  bool has_step(const Statement* loop, const Dim& step) const {
    const auto found = distance(indices, view, loop->id);
    return found && *found == step;
  }
};

// Matches convolutions and weight gradients. The two differ in the role of loops: positions of the
// result are parallel in a convolution and reduced in its weight gradient, taps and channels the
// reverse.
class WindowMatcher {
 public:
  WindowMatcher(const Contraction& contraction, const Statement& store, bool is_gradient,
                ChannelPadding padding, std::int64_t granularity)
      : contraction_(contraction),
        store_(store),
        is_gradient_(is_gradient),
        padding_(padding),
        granularity_(granularity),
        positions_(by_id(is_gradient ? contraction.reduction : contraction.parallel)),
        taps_(by_id(is_gradient ? contraction.parallel : contraction.reduction)) {}

  WindowMatch run() {
    const bool matches = (is_gradient_ ? find_gradient() : find_image()) && has_channels_last() &&
                         read_axes() && take_channels() && uses_all_loops();
    if (!matches) return std::move(match_);
    const Access other(match_.other), result(store_);
    if (has_result_layout(is_gradient_ ? other : result, is_gradient_ ? result : other) &&
        fit_windows())
      check_weight_layout(is_gradient_ ? result : other);
    return std::move(match_);
  }

 private:
  bool refuse(std::string why) {
    match_.refusal = std::move(why);
    return false;
  }

  // The image is the factor that does not move along the result's channels.
  bool find_image() {
    const Access result(store_);
    for (const Statement* loop : contraction_.parallel) {
      if (result.has_step(loop, 1)) match_.outputs = loop;
    }
    if (match_.outputs == nullptr) return refuse("a result whose channels are not last");
    const Statement* const last = output_loop(contraction_);
    if (last != nullptr && last != match_.outputs) {
      match_.request.result_order = contraction_.parallel;
      std::erase(match_.request.result_order, last);
      match_.request.result_order.push_back(last);
      return refuse("a result whose channels are not last");
    }
    const bool is_a_image = !nests::depends_on(contraction_.a, match_.outputs->id);
    read_ = is_a_image ? contraction_.a : contraction_.b;
    match_.other = is_a_image ? contraction_.b : contraction_.a;
    if (nests::depends_on(read_, match_.outputs->id))
      return refuse("channels by themselves (depthwise)");
    const bool is_line = read_->view.size() == 3;
    if (read_->view.size() != 4 && !is_line) return refuse("images of other than one or two axes");
    match_.image = is_line ? with_unit_column(read_) : read_;
    if (!is_zero_outside(read_)) return refuse("an edge that is not zero");
    if (match_.other->bounds != Bounds::Inside)
      return refuse("weights that are read past their edges");
    return true;
  }

  // The gradient of the result is read at plain loops: positions, then outputs.
  bool find_gradient() {
    const auto reads_plainly = [&](const Scalar& load) {
      if (load->view.size() != 4 || load->bounds != Bounds::Inside) return false;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (!plain_loop(load->args[axis], positions_) && !(load->view[axis] == Dim(1)))
          return false;
      }
      return plain_loop(load->args[3], taps_) != nullptr;
    };
    const bool is_a_gradient = reads_plainly(contraction_.a) && !reads_plainly(contraction_.b);
    if (!is_a_gradient && !reads_plainly(contraction_.b))
      return refuse("no gradient of a convolution");
    match_.other = is_a_gradient ? contraction_.a : contraction_.b;
    match_.image = read_ = is_a_gradient ? contraction_.b : contraction_.a;
    match_.outputs = plain_loop(match_.other->args[3], taps_);
    if (read_->view.size() != 4 || !is_zero_outside(read_)) return refuse("no image");
    for (const Scalar& load : {match_.other, read_}) {
      if (!std::all_of(load->view.begin() + 1, load->view.end(),
                       [](const Dim& dim) { return dim.is_constant(); }))
        return refuse("images whose extents the run decides");
    }
    if (nests::depends_on(read_, match_.outputs->id)) return refuse("channels by themselves");
    return true;
  }

  // An image with channels on the second axis would match if it were copied.
  bool has_channels_last() {
    const auto is_channel = [&](std::size_t axis) {
      const Scalar& at = match_.image->args[axis];
      return plain_loop(at, taps_) != nullptr ||
             (is_gradient_ && nests::is_integer(at, 0) && match_.image->view[axis] == Dim(1));
    };
    if (is_channel(1) && !is_channel(3) && padding_ != ChannelPadding::Padded) {
      const std::optional<std::int64_t> count = match_.image->view[1].value();
      std::vector<std::size_t> axes = {0, 2, 1};
      if (read_->view.size() == 4) axes = {0, 2, 3, 1};
      const bool are_few = padding_ == ChannelPadding::Paddable && count && *count < granularity_;
      request_copy(std::move(axes), are_few ? granularity_ : 0);
      return refuse("images whose channels are not last");
    }
    return match_.image->view[3].is_constant() || refuse("channels whose number the run decides");
  }

  void request_copy(std::vector<std::size_t> axes, std::int64_t channels) {
    match_.request.load = read_;
    match_.request.axes = std::move(axes);
    match_.request.channels = channels;
  }

  bool read_axes() {
    for (std::size_t axis = 0; axis < 4; ++axis) {
      WindowAxis& made = axes_[axis];
      const Scalar& index = match_.image->args[axis];
      if (std::string why = read_axis(index, positions_, taps_, made); !why.empty())
        return refuse(std::move(why));
      made.image = match_.image->view[axis];
      made.result = extent_of(made.position);
    }
    if (axes_[0].tap != nullptr || axes_[0].before != 0 || axes_[0].stride != 1)
      return refuse("a batch with windows");
    match_.batch = axes_[0].position;
    match_.batch_count = extent_of(match_.batch);
    match_.axes = {axes_[1], axes_[2]};
    return true;
  }

  // A loop that moves both factors runs over groups of channels.
  bool take_channels() {
    const WindowAxis& axis = axes_[3];
    match_.channels = axis.tap;
    match_.groups = axis.position;
    const Dim channels = extent_of(axis.tap), held = axis.image;
    if (axis.before != 0 || axis.dilation != 1) return refuse("groups of channels");
    match_.channel_count = held.constant();
    if (match_.groups != nullptr) {
      const Dim& groups = match_.groups->extent;
      if (is_gradient_ || !groups.is_constant() || match_.groups->limit.is_defined() ||
          !(channels == Dim(axis.stride)) || !(held == channels * groups) ||
          !nests::depends_on(match_.other, match_.groups->id))
        return refuse("groups of channels");
      match_.group_count = groups.constant();
      match_.channel_count = axis.stride;
    } else {
      match_.is_padded = !(channels == held);
      if (match_.is_padded && padding_ != ChannelPadding::Padded)
        return refuse("groups of channels");
      if (padding_ == ChannelPadding::Paddable && held.constant() < granularity_) {
        std::vector<std::size_t> axes = {0, 1, 2};
        if (read_->view.size() == 4) axes.push_back(3);
        request_copy(std::move(axes), granularity_);
        return refuse("few channels");
      }
    }
    match_.output_count = match_.outputs->extent;
    return match_.output_count.is_constant() || refuse("channels whose number the run decides");
  }

  bool uses_all_loops() {
    std::set<std::size_t> used{match_.outputs->id};
    for (const WindowAxis& axis : axes_) {
      for (const Statement* loop : {axis.position, axis.tap}) {
        if (loop != nullptr && !used.insert(loop->id).second)
          return refuse("a loop along two axes");
      }
    }
    return used.size() == positions_.size() + taps_.size() ||
           refuse("loops that move along no axis");
  }

  // The result lies in one piece: batch, row, column, group, output.
  bool has_result_layout(const Access& result, const Access& weights) {
    Dim piece = match_.output_count;
    if (match_.groups != nullptr && !result.has_step(match_.groups, piece))
      return refuse("a result that is not in one piece");
    piece = piece * Dim(match_.group_count);
    for (const std::size_t axis : {2U, 1U, 0U}) {
      const Statement* const loop = axes_[axis].position;
      if (loop == nullptr) continue;
      if (!result.has_step(loop, piece)) return refuse("a result that is not in one piece");
      if (!weights.has_step(loop, 0)) return refuse("weights that differ from place to place");
      piece = piece * loop->extent;
    }
    return starts_at_zero(result.indices, result.view.size()) ||
           refuse("a result that is not in one piece");
  }

  bool fit_windows() {
    for (WindowAxis& axis : match_.axes) {
      const Dim taps = extent_of(axis.tap);
      if (!taps.is_constant()) return refuse("windows whose size the run decides");
      axis.taps = taps.constant();
      if (std::string why = fit_padding(axis); !why.empty()) return refuse(std::move(why));
    }
    return true;
  }

  void check_weight_layout(const Access& weights) {
    bool& is_laid_so = match_.has_weight_layout;
    is_laid_so = starts_at_zero(weights.indices, weights.view.size());
    if (match_.channels != nullptr) is_laid_so &= weights.has_step(match_.channels, 1);
    Dim piece = match_.channel_count;
    for (const Statement* loop : {match_.axes[1].tap, match_.axes[0].tap,
                                  static_cast<const Statement*>(match_.outputs), match_.groups}) {
      if (loop == nullptr) continue;
      is_laid_so &= weights.has_step(loop, piece);
      piece = piece * loop->extent;
    }
  }

  const Contraction& contraction_;
  const Statement& store_;
  const bool is_gradient_;
  const ChannelPadding padding_;
  const std::int64_t granularity_;
  const LoopMap positions_, taps_;
  Scalar read_;  // the image, which may have one axis
  std::array<WindowAxis, 4> axes_;
  WindowMatch match_;
};

}  // namespace

LoopMap by_id(const std::vector<const Statement*>& loops) {
  LoopMap made;
  for (const Statement* loop : loops) made[loop->id] = loop;
  return made;
}

const Statement* plain_loop(const Scalar& index, const LoopMap& of) {
  const auto affine = nests::affine_of(index);
  if (!affine || affine->start != 0 || affine->steps.size() != 1 ||
      affine->steps.begin()->second != 1)
    return nullptr;
  const auto found = of.find(affine->steps.begin()->first);
  return found == of.end() ? nullptr : found->second;
}

std::string read_axis(const Scalar& index, const LoopMap& positions, const LoopMap& taps,
                      WindowAxis& axis) {
  const auto affine = nests::affine_of(index);
  if (!affine) return "windows that do not move evenly";
  axis.before = -affine->start;
  for (const auto& [id, step] : affine->steps) {
    if (step <= 0) return "windows that run backwards";
    const auto position = positions.find(id), tap = taps.find(id);
    const bool is_position = position != positions.end();
    if (!is_position && tap == taps.end()) return "windows of other loops";
    const Statement*& loop = is_position ? axis.position : axis.tap;
    if (loop != nullptr) return "windows of more than one loop";
    loop = is_position ? position->second : tap->second;
    (is_position ? axis.stride : axis.dilation) = step;
  }
  return "";
}

std::string fit_padding(WindowAxis& axis) {
  // Padding of symbolic extents is searched up to this bound.
  constexpr std::int64_t kMostPadding = 256;
  const std::int64_t span = axis.span();
  if (axis.before < 0) return "windows that do not begin at the edge";
  if (axis.before >= span) return "padding wider than the window";
  const auto suits = [&](std::int64_t after) {
    return floor_div(axis.image + Dim(axis.before + after - span), axis.stride) + 1 == axis.result;
  };
  std::int64_t most = std::min(span, kMostPadding);
  axis.after = 0;
  if (axis.image.is_constant() && axis.result.is_constant()) {
    const std::int64_t covered = (axis.result.constant() - 1) * axis.stride + span;
    axis.after = std::max<std::int64_t>(0, covered - axis.before - axis.image.constant());
    most = std::min(span, axis.after + 1);
  }
  while (axis.after < most && !suits(axis.after)) ++axis.after;
  if (axis.after >= most) return "windows that end before the edge, or padding wider than they are";
  if (axis.image.range().lo < 1 && axis.before + axis.after >= span)
    return "a result of padding alone, if the image is empty";
  return "";
}

std::vector<Dim> WindowMatch::extents() const {
  const WindowAxis &rows = axes[0], &columns = axes[1];
  return {batch_count,   rows.image,       columns.image, channel_count,  output_count,
          rows.taps,     columns.taps,     rows.result,   columns.result, rows.before,
          rows.after,    columns.before,   columns.after, rows.stride,    columns.stride,
          rows.dilation, columns.dilation, group_count};
}

std::optional<nests::Packing> WindowMatch::packing() const {
  nests::Packing made;
  made.buffer = other->id;
  made.source_dims = other->view;
  made.coordinates.assign(other->args.begin(),
                          other->args.begin() + static_cast<std::ptrdiff_t>(other->view.size()));
  for (const Statement* loop : {groups, outputs, axes[0].tap, axes[1].tap, channels}) {
    if (loop == nullptr) continue;
    made.loops.push_back(loop->id);
    made.extents.push_back(loop == channels ? channel_count : loop->extent.constant());
  }
  if (made.loops.size() < 2) return std::nullopt;
  made.limit = made.extents.front() * made.extents.back();
  return made;
}

WindowMatch match_windows(const Contraction& contraction, const Statement& store,
                          ChannelPadding padding, std::int64_t granularity) {
  return WindowMatcher(contraction, store, false, padding, granularity).run();
}

WindowMatch match_weight_gradient_windows(const Contraction& contraction, const Statement& store,
                                          ChannelPadding padding, std::int64_t granularity) {
  return WindowMatcher(contraction, store, true, padding, granularity).run();
}

}  // namespace tenon::codegen::cuda
