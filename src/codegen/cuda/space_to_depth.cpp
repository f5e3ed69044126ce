#include "codegen/cuda/space_to_depth.h"

#include "base/error.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/inline_copies.h"
#include "codegen/cuda/window_match.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/operand_copy.h"
#include "nests/schedule/loops.h"
#include "nests/stage_writer.h"
#include "nests/stride.h"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <set>

namespace tenon::codegen::cuda {
namespace {

using nests::Contraction;
using nests::loop_statement;

// Libraries are fast from this channel count on.
constexpr std::int64_t kMostChannels = 4;
// im2col multiplies the size of the image by the window size: only for small windows.
constexpr std::int64_t kMostUnfolded = 32;
// Below this number of results the extra copy does not pay.
constexpr std::int64_t kFewestPositions = 1 << 14;

// A spatial axis whose positions are folded into channels.
struct FoldedAxis : WindowAxis {
  std::size_t axis = 0;  // axis of the image
  // In the new image: positions folded into channels, and remaining window steps.
  std::int64_t folded = 1, steps = 1;

  std::int64_t positions() const { return position->extent.constant(); }
  // Rows of the new image.
  std::int64_t rows() const { return positions() + steps - 1; }
};

// A convolution, or its weight gradient.
struct ConvolutionWindow {
  Scalar image, other;
  bool is_gradient = false;
  std::array<FoldedAxis, 2> axes;
  std::optional<std::size_t> batch_axis, channel_axis;  // axes of the image
  const Statement *batch = nullptr, *channels = nullptr, *outputs = nullptr;
  std::int64_t padded_channels = 1;  // including zero padding

  std::int64_t depth() const { return axes[0].folded * axes[1].folded * padded_channels; }
};

// Completes an axis with two loops: position = stride * outer + tap + start. Returns false if it is
// no window of constant size.
bool take_window(FoldedAxis& axis, bool& is_gradient) {
  if (axis.before < 0 || !axis.position->extent.is_constant() || !axis.tap->extent.is_constant())
    return false;
  // The stride distinguishes the window's loop, else the smaller extent does.
  is_gradient = axis.stride != axis.dilation
                    ? axis.dilation > axis.stride
                    : axis.position->extent.constant() < axis.tap->extent.constant();
  if (is_gradient) {
    std::swap(axis.position, axis.tap);
    std::swap(axis.stride, axis.dilation);
  }
  axis.taps = axis.tap->extent.constant();
  return axis.dilation == 1;
}

// True if every axis of the weights is indexed by one loop, or has one element.
bool are_plain(const Scalar& weights) {
  if (weights->bounds != Bounds::Inside) return false;
  for (std::size_t axis = 0; axis < weights->view.size(); ++axis) {
    const Scalar& at = weights->args[axis];
    if (at->kind != ScalarKind::Loop && !nests::is_integer(at, 0)) return false;
  }
  return true;
}

// For bytes, folds a whole row of the window at one step into channels if it fits a shared-memory
// tile. TMA im2col needs 17 cycles for a pixel of 16 or 48 bytes, but 7 for one of 64. Measured on
// an H200.
bool fold_whole_rows(ConvolutionWindow& windows) {
  constexpr std::int64_t kPixel = 64;
  ConvolutionWindow trial = windows;
  FoldedAxis& columns = trial.axes[1];
  columns.steps = 1;
  columns.folded = columns.taps;
  trial.padded_channels =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(windows.padded_channels)));
  while (trial.depth() % kPixel != 0) ++columns.folded;
  if (trial.depth() > kTileBytes) return false;
  windows = trial;
  return true;
}

bool choose_folding(ConvolutionWindow& windows, DType dtype) {
  const std::int64_t channels =
      windows.channels == nullptr ? 1 : windows.channels->extent.constant();
  const bool strides = windows.axes[0].stride > 1 && windows.axes[1].stride > 1;
  std::int64_t positions = 1, unfolded = channels;
  for (FoldedAxis& axis : windows.axes) {
    if (axis.taps < 2 || (strides && axis.taps <= axis.stride)) return false;
    axis.folded = strides ? axis.stride : axis.taps;
    axis.steps = (axis.taps + axis.folded - 1) / axis.folded;
    positions *= axis.positions();
    unfolded *= axis.taps;
  }
  if (windows.batch != nullptr && windows.batch->extent.is_constant())
    positions *= windows.batch->extent.constant();
  const bool is_narrow = info(dtype).storage_bytes <= 2;
  if (!strides &&
      (windows.axes[0].stride > 1 || windows.axes[1].stride > 1 || unfolded > kMostUnfolded))
    return false;
  // 16-bit images are copied in any case, because their channels would be padded otherwise.
  if (positions < kFewestPositions && !(strides && is_narrow)) return false;
  // Pad to pieces of 16 bytes: with zero channels, or with zero window columns.
  const std::int64_t together = 16 / static_cast<std::int64_t>(info(dtype).storage_bytes);
  windows.padded_channels = channels;
  if (strides && is_integer(dtype) && fold_whole_rows(windows)) return true;
  while (windows.depth() % together != 0)
    ++(strides ? windows.padded_channels : windows.axes[1].folded);
  return true;
}

// Finds the two window axes of the image, and the loops of its two other axes.
bool take_axes(const Contraction& contraction, ConvolutionWindow& windows) {
  const LoopMap parallel = by_id(contraction.parallel), reduction = by_id(contraction.reduction);
  const Scalar& image = windows.image;
  std::size_t count = 0;
  std::array<FoldedAxis, 4> axes;
  for (std::size_t k = 0; k < 4; ++k) {
    FoldedAxis& axis = axes[k];
    axis.axis = k;
    if (!read_axis(image->args[k], parallel, reduction, axis).empty()) return false;
    if (axis.position == nullptr || axis.tap == nullptr) continue;
    bool is_gradient = false;
    if (!take_window(axis, is_gradient) || count == 2 ||
        (count == 1 && is_gradient != windows.is_gradient))
      return false;
    windows.is_gradient = is_gradient;
    windows.axes[count++] = axis;
  }
  // Batch is parallel and channels are reduced in a convolution; the reverse in its gradient.
  for (const FoldedAxis& axis : axes) {
    if (axis.position != nullptr && axis.tap != nullptr) continue;
    const bool is_batch = (axis.position != nullptr) != windows.is_gradient;
    const Statement* const loop = axis.position != nullptr ? axis.position : axis.tap;
    const Dim extent = loop == nullptr ? Dim(1) : loop->extent;
    if (axis.before != 0 || axis.stride * axis.dilation != 1 || !(extent == image->view[axis.axis]))
      return false;
    if (loop == nullptr) continue;
    (is_batch ? windows.batch : windows.channels) = loop;
    (is_batch ? windows.batch_axis : windows.channel_axis) = axis.axis;
  }
  return count == 2;
}

// Finds the loop over outputs: the only one that moves no axis of the image. Every other loop moves
// one axis.
bool take_outputs(const Contraction& contraction, ConvolutionWindow& windows) {
  std::set<std::size_t> used;
  for (const FoldedAxis& axis : windows.axes) used.insert({axis.position->id, axis.tap->id});
  std::size_t count = 4;
  for (const Statement* loop : {windows.batch, windows.channels}) {
    if (loop == nullptr) continue;
    used.insert(loop->id);
    ++count;
  }
  for (const Statement* loop : contraction.parallel) {
    if (used.contains(loop->id)) continue;
    if (windows.outputs != nullptr) return false;
    windows.outputs = loop;
  }
  return windows.outputs != nullptr && used.size() == count &&
         !nests::depends_on(windows.image, windows.outputs->id) &&
         windows.outputs->extent.is_constant() &&
         count + 1 == contraction.parallel.size() + contraction.reduction.size();
}

std::optional<ConvolutionWindow> match_few_channels(const LoopNest& nest,
                                                    const Contraction& contraction,
                                                    const Scalar& image, const Scalar& other) {
  const bool has_number_around = is_integer(image->dtype) && image->bounds == Bounds::Fill &&
                                 (image->args.back()->kind == ScalarKind::Integer ||
                                  image->args.back()->kind == ScalarKind::Real);
  if (image->view.size() != 4 || image->id == other->id ||
      !(nests::can_be_repacked(image) || has_number_around))
    return std::nullopt;
  ConvolutionWindow windows;
  windows.image = image;
  windows.other = other;
  if (!take_axes(contraction, windows) || !take_outputs(contraction, windows)) return std::nullopt;
  const bool are_few =
      windows.channels == nullptr || (windows.channels->extent.is_constant() &&
                                      windows.channels->extent.constant() <= kMostChannels);
  if (!are_few || (!windows.is_gradient && !are_plain(other))) return std::nullopt;
  // The other factor depends only on reduction loops and outputs.
  for (const Statement* loop : contraction.parallel) {
    if (loop != windows.outputs && nests::depends_on(other, loop->id)) return std::nullopt;
  }
  if (!choose_folding(windows, nest.buffers[image->id].dtype)) return std::nullopt;
  return windows;
}

class SpaceToDepthRewriter {
 public:
  SpaceToDepthRewriter(NestSequence& sequence, const NestSequence::NestCall& part,
                       const Contraction& contraction, ConvolutionWindow windows)
      : sequence_(sequence), part_(part), contraction_(contraction), w_(std::move(windows)) {}

  SpaceToDepth run() {
    made_.contraction = part_;
    LoopNest& nest = made_.contraction.nest;
    depth_ = nest.new_loop("d");
    for (const std::size_t k : {0U, 1U}) {
      if (w_.axes[k].steps > 1) steps_[k] = nest.new_loop(concat("s", k));
    }
    const Scalar image = copy_image();
    if (w_.is_gradient) {
      fold_gradient(image);
    } else {
      fold_convolution(image);
    }
    list_extents(nest);
    nests::drop_unused_buffers(made_.contraction);
    return std::move(made_);
  }

 private:
  static Scalar load(std::size_t buffer, DType dtype, Dims view, std::vector<Scalar> at) {
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.dtype = dtype;
    node.id = buffer;
    node.view = std::move(view);
    node.args = std::move(at);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  // Adds a buffer to the sequence and to the nest of the contraction.
  std::size_t add_buffer(DType dtype, const Dims& dims, StorageClass storage) {
    last_ = sequence_.buffers.size();
    sequence_.buffers.push_back({NestSequence::BufferRole::Temporary, 0, dtype, dims});
    made_.contraction.nest.buffers.push_back({concat("m", last_), dtype, dims, storage});
    made_.contraction.buffers.push_back(last_);
    return made_.contraction.nest.buffers.size() - 1;
  }

  Scalar step(std::size_t k) const {
    return steps_[k] ? loop_scalar(*steps_[k]) : integer_scalar(0);
  }

  // Adds a nest that fills the last added buffer, viewed with one axis per entry of `extents`. `at`
  // maps the loop positions to source indices; out-of-bounds reads yield the load's fill value or
  // zero.
  void add_copy(const char* name, const Scalar& source, const Dims& extents,
                const std::function<std::vector<Scalar>(const std::vector<Scalar>&)>& at) {
    const NestBuffer& from = part_.nest.buffers[source->id];
    NestSequence::NestCall copy;
    copy.nest.name = part_.nest.name + name;
    copy.nest.buffers = {
        {"y0", from.dtype, sequence_.buffers[last_].dims, StorageClass::Result},
        {from.name, from.dtype, from.dims, StorageClass::Operand},
    };
    copy.buffers = {last_, nests::buffer_of(part_, source->id)};
    std::vector<Scalar> positions;
    for (std::size_t k = 0; k < extents.size(); ++k)
      positions.push_back(loop_scalar(copy.nest.new_loop(concat("i", k))));
    ScalarNode read = source.node();
    read.id = 1;
    // Quantized images may be padded with a nonzero value; in padding channels it meets zero
    // weights.
    const Scalar outside =
        source->bounds == Bounds::Fill ? source->args.back() : literal_scalar(source->dtype, 0, 0);
    read.bounds = Bounds::Fill;
    read.args = at(positions);
    read.args.push_back(outside);
    Statement store;
    store.kind = Statement::Kind::Store;
    store.id = 0;
    store.view = extents;
    store.indices = positions;
    store.value = Scalar(std::make_shared<const ScalarNode>(std::move(read)));
    Block body{std::move(store)};
    for (std::size_t k = extents.size(); k-- > 0;)
      body = {loop_statement(k, extents[k], std::move(body), true)};
    copy.nest.body = std::move(body);
    list_extents(copy.nest);
    made_.copies.push_back(std::move(copy));
  }

  // Copies the image into its new layout, and returns the load of the contraction.
  Scalar copy_image() {
    const FoldedAxis &rows = w_.axes[0], &columns = w_.axes[1];
    const Dim batch = w_.batch == nullptr ? Dim(1) : w_.batch->extent;
    // Whole rows of the window are contiguous and are copied as they are.
    const bool has_rows = columns.folded > columns.stride && columns.stride > 1;
    Dims seen = {batch, rows.rows(), columns.rows(), rows.folded};
    if (has_rows) {
      seen.push_back(columns.folded * w_.padded_channels);
    } else {
      seen.insert(seen.end(), {columns.folded, w_.padded_channels});
    }
    const Dims view = {batch, rows.rows(), columns.rows(), w_.depth()};
    const DType dtype = part_.nest.buffers[w_.image->id].dtype;
    const std::size_t id = add_buffer(dtype, view, StorageClass::Operand);
    add_copy("_depth", w_.image, seen, [&](const std::vector<Scalar>& loops) {
      std::vector<Scalar> i = loops, at(4, integer_scalar(0));
      if (has_rows) {
        const Scalar held = integer_scalar(w_.padded_channels);
        i[4] = binary_scalar(BinaryOp::FloorDivide, DType::I64, loops[4], held);
        i.push_back(binary_scalar(BinaryOp::Modulo, DType::I64, loops[4], held));
      }
      for (const std::size_t k : {0U, 1U}) {
        const FoldedAxis& axis = w_.axes[k];
        at[axis.axis] = plus(plus(times(i[1 + k], integer_scalar(axis.stride)), i[3 + k]),
                             integer_scalar(-axis.before));
      }
      if (w_.batch_axis) at[*w_.batch_axis] = i[0];
      // A single channel without a loop has index 0; zero padding follows it.
      if (w_.channel_axis) {
        at[*w_.channel_axis] = i[5];
      } else if (w_.padded_channels > 1) {
        at[free_axis()] = i[5];
      }
      return at;
    });
    const auto moved = [&](std::size_t k) {
      return plus(loop_scalar(w_.axes[k].position->id), step(k));
    };
    return load(id, w_.image->dtype, view,
                {w_.batch == nullptr ? integer_scalar(0) : loop_scalar(w_.batch->id), moved(0),
                 moved(1), loop_scalar(depth_)});
  }

  // Returns an axis of one element that no loop indexes.
  std::size_t free_axis() const {
    std::size_t axis = 0;
    while (axis == w_.axes[0].axis || axis == w_.axes[1].axis || axis == w_.batch_axis) ++axis;
    return axis;
  }

  Statement fold_of(const Scalar& a, const Scalar& b) const {
    const Statement* fold = &(*contraction_.inner)[1];
    while (fold->kind == Statement::Kind::Loop) fold = &fold->body.front();
    Statement made = *fold;
    made.value = binary_scalar(BinaryOp::Multiply, fold->value->dtype,
                               nests::with_load(fold->value->args[0], a),
                               nests::with_load(fold->value->args[1], b));
    return made;
  }

  // Wraps a body in loops over the remaining window steps and over depth.
  Block in_windows(Block body, bool is_independent) const {
    body = {loop_statement(depth_, w_.depth(), std::move(body), is_independent)};
    for (const std::size_t k : {1U, 0U}) {
      if (steps_[k])
        body = {loop_statement(*steps_[k], w_.axes[k].steps, std::move(body), is_independent)};
    }
    return body;
  }

  Dims weight_dims() const {
    return {w_.outputs->extent, w_.axes[0].steps, w_.axes[1].steps, w_.depth()};
  }
  Dims weight_extents() const {
    return {w_.outputs->extent, w_.axes[0].steps,  w_.axes[1].steps,
            w_.axes[0].folded,  w_.axes[1].folded, w_.padded_channels};
  }

  void fold_convolution(const Scalar& image) {
    const DType dtype = part_.nest.buffers[w_.other->id].dtype;
    const std::size_t id = add_buffer(dtype, weight_dims(), StorageClass::Operand);
    made_.weights = nests::buffer_of(part_, w_.other->id);
    made_.laid_weights = last_;
    const auto at = [&](const std::vector<Scalar>& i) {
      std::vector<Scalar> place(w_.other->args.begin(), w_.other->args.end());
      for (Scalar& axis : place) {
        if (axis->kind != ScalarKind::Loop) continue;
        for (const std::size_t k : {0U, 1U}) {
          if (axis->id != w_.axes[k].tap->id) continue;
          axis = plus(times(i[1 + k], integer_scalar(w_.axes[k].folded)), i[3 + k]);
          break;
        }
        if (axis->kind != ScalarKind::Loop) continue;
        if (axis->id == w_.outputs->id)
          axis = i[0];
        else if (w_.channels != nullptr && axis->id == w_.channels->id)
          axis = i[5];
      }
      return place;
    };
    add_copy("_depth_weights", w_.other, weight_extents(), at);
    nests::Packing& packing = made_.packing;
    std::vector<Scalar> loops;
    for (std::size_t k = 0; k < weight_extents().size(); ++k) {
      packing.loops.push_back(k);
      packing.extents.push_back(weight_extents()[k].constant());
      loops.push_back(loop_scalar(k));
    }
    packing.source_dims = w_.other->view;
    packing.coordinates = at(loops);
    packing.limit = packing.extents.front() * packing.extents.back();
    const Scalar weights =
        load(id, w_.other->dtype, weight_dims(),
             {loop_scalar(w_.outputs->id), step(0), step(1), loop_scalar(depth_)});
    const bool is_first = contraction_.a->id == w_.image->id;
    Block summed =
        in_windows({fold_of(is_first ? image : weights, is_first ? weights : image)}, false);
    Block inner{(*contraction_.inner)[0], std::move(summed.front())};
    inner.insert(inner.end(), contraction_.inner->begin() + 2, contraction_.inner->end());
    made_.contraction.nest.body = nests::in_loops(contraction_.parallel, std::move(inner));
  }

  void fold_gradient(const Scalar& image) {
    const std::size_t local = (*contraction_.inner)[0].id;
    const DType dtype = part_.nest.locals[local];
    const std::size_t id = add_buffer(dtype, weight_dims(), StorageClass::Result);
    const std::size_t gradient = last_;
    const bool is_first = contraction_.a->id == w_.image->id;
    Block summed =
        nests::in_loops(contraction_.reduction,
                        {fold_of(is_first ? image : w_.other, is_first ? w_.other : image)});
    Statement store;
    store.kind = Statement::Kind::Store;
    store.id = id;
    store.value = local_scalar(local, dtype);
    store.indices = {loop_scalar(w_.outputs->id), step(0), step(1), loop_scalar(depth_)};
    store.view = weight_dims();
    Block inner{(*contraction_.inner)[0], std::move(summed.front()), std::move(store)};
    made_.contraction.nest.body = nests::in_loops({w_.outputs}, in_windows(std::move(inner), true));

    made_.rest = part_;
    NestSequence::NestCall& rest = *made_.rest;
    rest.nest.name += "_epilogue";
    const std::size_t read = rest.nest.buffers.size();
    rest.nest.buffers.push_back(
        {concat("m", gradient), dtype, weight_dims(), StorageClass::Operand});
    rest.buffers.push_back(gradient);
    std::vector<Scalar> at(6, integer_scalar(0));
    at[0] = loop_scalar(w_.outputs->id);
    for (const std::size_t k : {0U, 1U}) {
      const Scalar window = loop_scalar(w_.axes[k].tap->id);
      const Scalar folded = integer_scalar(w_.axes[k].folded);
      const bool is_whole = w_.axes[k].steps == 1;
      if (!is_whole) at[1 + k] = binary_scalar(BinaryOp::FloorDivide, DType::I64, window, folded);
      at[3 + k] = is_whole ? window : binary_scalar(BinaryOp::Modulo, DType::I64, window, folded);
    }
    if (w_.channels != nullptr) at[5] = loop_scalar(w_.channels->id);
    Block body{define_statement(local, load(read, dtype, weight_extents(), std::move(at)))};
    body.insert(body.end(), contraction_.inner->begin() + 2, contraction_.inner->end());
    rest.nest.body = nests::in_loops(contraction_.parallel, std::move(body));
    list_extents(rest.nest);
    nests::drop_unused_buffers(rest);
  }

  NestSequence& sequence_;
  const NestSequence::NestCall& part_;
  const Contraction& contraction_;
  const ConvolutionWindow w_;
  SpaceToDepth made_;
  std::size_t last_ = 0;   // last buffer added to the sequence
  std::size_t depth_ = 0;  // loop over depth
  std::array<std::optional<std::size_t>, 2> steps_;
};

}  // namespace

std::optional<SpaceToDepth> space_to_depth(NestSequence& sequence,
                                           const NestSequence::NestCall& part,
                                           const Contraction& contraction) {
  for (const bool is_first : {true, false}) {
    auto windows =
        match_few_channels(part.nest, contraction, is_first ? contraction.a : contraction.b,
                           is_first ? contraction.b : contraction.a);
    if (windows)
      return SpaceToDepthRewriter(sequence, part, contraction, std::move(*windows)).run();
  }
  return std::nullopt;
}

}  // namespace tenon::codegen::cuda
