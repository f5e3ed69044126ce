#include "codegen/cuda/library_match.h"

#include "codegen/cuda/gemm_match.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/stride.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

namespace tenon::codegen::cuda {
namespace {

using nests::Contraction;

const Scalar& without_casts(const Scalar& scalar) {
  const Scalar* inner = &scalar;
  while ((*inner)->kind == ScalarKind::Cast && is_float((*inner)->dtype) &&
         is_float((*inner)->args[0]->dtype))
    inner = &(*inner)->args[0];
  return *inner;
}

bool holds_local(const Scalar& scalar, std::size_t local) {
  if (scalar->kind == ScalarKind::Local) return scalar->id == local;
  if (scalar->kind == ScalarKind::Load) return false;
  return std::any_of(scalar->args.begin(), scalar->args.end(),
                     [&](const Scalar& arg) { return holds_local(arg, local); });
}

// Epilogue that a library can fuse.
struct Epilogue {
  Scalar bias, residual;  // loads
  bool is_rectified = false;
  double alpha = 1;
};

// Matches activation(alpha t + residual + bias), with the terms in any order. `is_bias` and
// `is_residual` classify loads.
template <class IsBias, class IsResidual>
std::optional<Epilogue> match_epilogue(const Statement& store, std::size_t local,
                                       const IsBias& is_bias, const IsResidual& is_residual) {
  Epilogue epilogue;
  const Scalar* value = &without_casts(store.value);
  const auto is_zero = [](const Scalar& scalar) {
    return scalar->kind == ScalarKind::Real && scalar->real == 0;
  };
  if ((*value)->kind == ScalarKind::Binary && (*value)->binary == BinaryOp::Maximum) {
    if (is_zero((*value)->args[1])) {
      value = &without_casts((*value)->args[0]);
    } else if (is_zero((*value)->args[0])) {
      value = &without_casts((*value)->args[1]);
    } else {
      return std::nullopt;
    }
    epilogue.is_rectified = true;
  }
  while ((*value)->kind == ScalarKind::Binary && (*value)->binary == BinaryOp::Add) {
    const bool is_first = holds_local((*value)->args[0], local);
    const Scalar& term = without_casts((*value)->args[is_first ? 1 : 0]);
    if (term->kind != ScalarKind::Load || term->bounds != Bounds::Inside) return std::nullopt;
    if (!epilogue.bias.is_defined() && is_bias(term)) {
      epilogue.bias = term;
    } else if (!epilogue.residual.is_defined() && is_residual(term)) {
      epilogue.residual = term;
    } else {
      return std::nullopt;
    }
    value = &without_casts((*value)->args[is_first ? 0 : 1]);
  }
  if ((*value)->kind == ScalarKind::Binary && (*value)->binary == BinaryOp::Multiply) {
    const bool is_first = holds_local((*value)->args[0], local);
    const Scalar& factor = (*value)->args[is_first ? 1 : 0];
    if (factor->kind != ScalarKind::Real) return std::nullopt;
    epilogue.alpha = factor->real;
    value = &without_casts((*value)->args[is_first ? 0 : 1]);
  }
  if ((*value)->kind != ScalarKind::Local || (*value)->id != local) return std::nullopt;
  return epilogue;
}

// A window index may be negative or strided; a channel index is a plain loop.
bool is_window_axis(const Scalar& index) {
  const auto affine = nests::affine_of(index);
  return !affine || affine->start != 0 || affine->steps.size() != 1 ||
         affine->steps.begin()->second != 1;
}

// An image is read at positions of two loops, one of the result and one of the window, which both
// move forward. In the gradient by an image, windows move backward.
bool has_window(const Scalar& load) {
  return std::any_of(
      load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()),
      [](const Scalar& index) {
        const auto affine = nests::affine_of(index);
        return affine && affine->steps.size() > 1 &&
               std::ranges::all_of(affine->steps, [](const auto& step) { return step.second > 0; });
      });
}

// Records the weight layout that would match: output, row, column, channel. With nonzero
// `channels`, zero-padded to that count.
void note_weight_order(const Scalar& weights, std::vector<const Statement*> loops,
                       std::int64_t channels, LibraryMatch& refusal) {
  const std::size_t rank = weights->view.size();
  // Weights of one-dimensional images have one window axis.
  if (rank == 3) std::erase_if(loops, [&](auto* loop) { return !loop && loops.size() > rank; });
  if (rank != loops.size() || weights->bounds != Bounds::Inside) return;
  std::vector<std::size_t> axes;
  for (const Statement* loop : loops) {
    std::size_t axis = 0;
    const auto suits = [&] {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return false;
      const Scalar& at = weights->args[axis];
      if (loop == nullptr) return weights->view[axis] == Dim(1);
      return at->kind == ScalarKind::Loop && at->id == loop->id;
    };
    while (axis < rank && !suits()) ++axis;
    if (axis == rank) return;
    axes.push_back(axis);
  }
  // The layout already matches; another condition fails.
  if (channels == 0 && std::is_sorted(axes.begin(), axes.end())) return;
  refusal.image_channels = channels;
  refusal.image = weights;
  refusal.image_order = std::move(axes);
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

// Returns the least zero padding after an axis of this size for which windows of `span` elements
// have `results` positions. Proven for all values of symbols, up to a padding of `kMostPadding`.
std::optional<std::int64_t> padding_after(const Dim& size, std::int64_t before, std::int64_t span,
                                          std::int64_t stride, const Dim& results) {
  constexpr std::int64_t kMostPadding = 256;
  const auto suits = [&](std::int64_t after) {
    return floor_div(size + Dim(before + after - span), stride) + 1 == results;
  };
  if (size.is_constant() && results.is_constant()) {
    const std::int64_t covered = (results.constant() - 1) * stride + span;
    const std::int64_t after = std::max<std::int64_t>(0, covered - before - size.constant());
    return after < span && suits(after) ? std::optional(after) : std::nullopt;
  }
  for (std::int64_t after = 0; after < std::min(span, kMostPadding); ++after) {
    if (suits(after)) return after;
  }
  return std::nullopt;
}

// Returns a read of a one-dimensional image (batch, position, channel) as one of an image with a
// single column.
Scalar with_unit_column(const Scalar& image) {
  ScalarNode node = image.node();
  node.view.insert(node.view.begin() + 2, Dim(1));
  node.args.insert(node.args.begin() + 2, integer_scalar(0));
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

}  // namespace

LibraryMatch match_matmul(const LoopNest& nest, const Contraction& contraction) {
  const std::optional<Statement> only = only_store(contraction);
  if (!only) return refuse("more than one result");
  const Statement& store = *only;
  if (!starts_from_zero((*contraction.inner)[0]))
    return refuse("the accumulator does not start at zero");
  LibraryMatch match;
  match.call.kind = LibraryCall::Kind::Matmul;
  if (std::string why = note_types(nest, contraction, store, match.call); !why.empty())
    return refuse(why);
  const GemmMatch product = match_gemm(contraction, store);
  if (!product.refusal.empty()) return refuse(product.refusal);
  match.is_split = product.is_split;
  // Below this size the launch overhead of a library dominates.
  const Dim work = product.m * product.n * product.k * product.batch;
  if (work.is_constant() && work.constant() < 1 << 14) return refuse("few products");
  const auto is_bias = [&](const Scalar& load) {
    if (product.is_swapped || nest.buffers[load->id].dtype != nest.buffers[store.id].dtype)
      return false;
    for (const Statement* loop : contraction.parallel) {
      const auto step = distance(load, loop->id), column_step = distance(store, loop->id);
      const auto in_a = distance(contraction.a, loop->id), in_b = distance(contraction.b, loop->id);
      const bool is_column = *in_a == Dim(0) && !(*in_b == Dim(0));
      if (!step || !(*step == (is_column ? *column_step : Dim(0)))) return false;
    }
    return starts_at_zero(load->args, load->view.size());
  };
  const auto is_residual = [&](const Scalar& load) {
    if (nest.buffers[load->id].dtype != nest.buffers[store.id].dtype) return false;
    for (const Statement* loop : contraction.parallel) {
      const auto step = distance(load, loop->id), result_step = distance(store, loop->id);
      if (!step || !(*step == *result_step)) return false;
    }
    return starts_at_zero(load->args, load->view.size());
  };
  const auto epilogue = match_epilogue(store, (*contraction.inner)[0].id, is_bias, is_residual);
  if (!epilogue) return refuse("the epilogue is not a bias, residual or relu");
  // The runtime skips empty results and fills results of empty sums with zeros.
  const bool is_plain = !epilogue->bias.is_defined() && !epilogue->residual.is_defined();
  if (product.k.range().lo < 1 && !is_plain)
    return refuse("an epilogue of a sum that may be empty");
  match.call.is_a_transposed = product.is_a_transposed;
  match.call.is_b_transposed = product.is_b_transposed;
  match.call.has_bias = epilogue->bias.is_defined();
  match.call.has_residual = epilogue->residual.is_defined();
  match.call.is_rectified = epilogue->is_rectified;
  match.call.alpha = epilogue->alpha;
  match.extents = {product.batch,     product.m,      product.n,         product.k,
                   product.a_leading, product.a_step, product.b_leading, product.b_step,
                   product.y_leading, product.y_step, product.y_leading, product.y_step};
  match.buffers = {product.a->id, product.b->id};
  if (epilogue->bias.is_defined()) match.buffers.push_back(epilogue->bias->id);
  if (epilogue->residual.is_defined()) match.buffers.push_back(epilogue->residual->id);
  match.buffers.push_back(store.id);
  return match;
}

LibraryMatch match_convolution(const LoopNest& nest, const Contraction& contraction,
                               const std::vector<bool>& is_constant, ChannelPadding padding,
                               Numbers numbers) {
  const std::optional<Statement> only = only_store(contraction);
  if (!only) return refuse("more than one result");
  const Statement& store = *only;
  if (!starts_from_zero((*contraction.inner)[0]))
    return refuse("the accumulator does not start at zero");
  LibraryMatch match;
  match.call.kind = LibraryCall::Kind::Convolution;
  if (numbers == Numbers::Floats) {
    if (std::string why = note_types(nest, contraction, store, match.call); !why.empty())
      return refuse(why);
    if (match.call.result_dtype != match.call.dtype) return refuse("a result of another type");
  }
  // The weights are the factor that moves along the result's innermost loop.
  std::map<std::size_t, const Statement*> parallel, reduction;
  for (const Statement* loop : contraction.parallel) parallel[loop->id] = loop;
  for (const Statement* loop : contraction.reduction) reduction[loop->id] = loop;
  const Statement* outputs = nullptr;
  for (const Statement* loop : contraction.parallel) {
    const auto step = distance(store, loop->id);
    if (step && *step == Dim(1)) outputs = loop;
  }
  if (outputs == nullptr) return refuse("a result whose channels are not last");
  if (const Statement* channels = output_loop(contraction);
      channels != nullptr && channels != outputs) {
    LibraryMatch other = refuse("a result whose channels are not last");
    for (const Statement* loop : contraction.parallel) {
      if (loop != channels) other.result_order.push_back(loop);
    }
    other.result_order.push_back(channels);
    return other;
  }
  const bool is_a_image = !nests::depends_on(contraction.a, outputs->id);
  const Scalar read = is_a_image ? contraction.a : contraction.b,
               weights = is_a_image ? contraction.b : contraction.a;
  if (nests::depends_on(read, outputs->id)) return refuse("channels by themselves (depthwise)");
  const bool is_line = read->view.size() == 3;
  if (read->view.size() != 4 && !is_line) return refuse("images of other than one or two axes");
  const Scalar image = is_line ? with_unit_column(read) : read;
  if (!is_zero_outside(image)) return refuse("an edge that is not zero");
  if (weights->bounds != Bounds::Inside) return refuse("weights that are read past their edges");
  // Channels are an axis that only reduction loops move along. If it is not the last axis, a copy
  // with channels last would match.
  std::size_t channel_axis = 3;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const auto moves = [&](const auto& loops) {
      return std::any_of(loops.begin(), loops.end(), [&](const auto& loop) {
        return nests::depends_on(image->args[axis], loop.first);
      });
    };
    if (moves(reduction) && !moves(parallel) && !is_window_axis(image->args[axis]))
      channel_axis = axis;
  }
  if (channel_axis != 3) {
    LibraryMatch other = refuse("images whose channels are not last");
    if (channel_axis == 1) {
      other.image = read;
      other.image_order =
          is_line ? std::vector<std::size_t>{0, 2, 1} : std::vector<std::size_t>{0, 2, 3, 1};
      const std::optional<std::int64_t> count = image->view[1].value();
      const std::int64_t together = channel_granularity(match.call.dtype);
      if (padding == ChannelPadding::Paddable && count && *count < together)
        other.image_channels = together;
    }
    return other;
  }
  if (!image->view[3].is_constant()) return refuse("channels whose number the run decides");
  // For each axis one index expression, and the loop of the window along it.
  struct Axis {
    const Statement* outer = nullptr;   // loop of the result
    const Statement* window = nullptr;  // loop of the reduction
    std::int64_t stride = 1, dilation = 1, start = 0;
  };
  std::array<Axis, 4> axes;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const auto affine = nests::affine_of(image->args[axis]);
    if (!affine) return refuse("windows that do not move evenly");
    axes[axis].start = affine->start;
    for (const auto& [loop, step] : affine->steps) {
      if (step <= 0) return refuse("windows that run backwards");
      if (parallel.contains(loop) && axes[axis].outer == nullptr) {
        axes[axis].outer = parallel[loop];
        axes[axis].stride = step;
      } else if (reduction.contains(loop) && axes[axis].window == nullptr) {
        axes[axis].window = reduction[loop];
        axes[axis].dilation = step;
      } else {
        return refuse("windows of more than one loop");
      }
    }
  }
  if (axes[0].window != nullptr || axes[0].start != 0 || axes[0].stride != 1)
    return refuse("a batch with windows");
  if (axes[3].outer != nullptr || axes[3].start != 0 || axes[3].dilation != 1)
    return refuse("groups of channels");
  const auto extent = [](const Statement* loop) { return loop == nullptr ? Dim(1) : loop->extent; };
  const Dim channels = extent(axes[3].window), output_count = outputs->extent;
  const bool is_padded = padding == ChannelPadding::Padded && !(channels == image->view[3]);
  if (!(channels == image->view[3]) && !is_padded) return refuse("groups of channels");
  const std::int64_t together = channel_granularity(match.call.dtype);
  if (padding == ChannelPadding::Paddable && channels.is_constant() &&
      channels.constant() < together) {
    LibraryMatch other = refuse("few channels");
    other.image = read;
    other.image_order = {0, 1, 2};
    if (!is_line) other.image_order.push_back(3);
    other.image_channels = together;
    return other;
  }
  if (!output_count.is_constant()) return refuse("channels whose number the run decides");
  std::set<std::size_t> used{outputs->id};
  for (const Axis& axis : axes) {
    for (const Statement* loop : {axis.outer, axis.window}) {
      if (loop != nullptr && !used.insert(loop->id).second) return refuse("a loop along two axes");
    }
  }
  if (used.size() != parallel.size() + reduction.size())
    return refuse("loops that move along no axis");
  // The result is contiguous: batch, rows, columns, outputs.
  Dim piece = output_count;
  for (const std::size_t axis : {2U, 1U, 0U}) {
    if (axes[axis].outer != nullptr) {
      const auto step = distance(store, axes[axis].outer->id);
      if (!step || !(*step == piece)) return refuse("a result that is not in one piece");
      if (nests::depends_on(weights, axes[axis].outer->id))
        return refuse("weights that differ from place to place");
    }
    piece = piece * extent(axes[axis].outer);
  }
  if (!starts_at_zero(store.indices, store.view.size()))
    return refuse("a result that is not in one piece");
  // Weight layout: output, row, column, channel.
  const std::array<const Statement*, 4> order = {outputs, axes[1].window, axes[2].window,
                                                 axes[3].window};
  bool is_laid_so = starts_at_zero(weights->args, weights->view.size());
  Dim step = 1;
  if (is_padded && order[3] == nullptr) step = image->view[3];
  for (std::size_t k = 4; k-- > 0;) {
    if (order[k] == nullptr) continue;
    const auto found = distance(weights, order[k]->id);
    if (!found) return refuse("weights that do not lie evenly");
    is_laid_so &= *found == step;
    step = step * (k == 3 && is_padded ? image->view[3] : order[k]->extent);
  }
  if (!is_laid_so) {
    const bool is_single = is_padded && order[3] == nullptr;  // without a loop to pack along
    if (!is_constant[weights->id] || is_single) {
      LibraryMatch other = refuse("weights that are laid out otherwise and no constants");
      note_weight_order(weights, {order.begin(), order.end()},
                        is_padded ? image->view[3].constant() : 0, other);
      return other;
    }
    nests::Packing packing;
    packing.buffer = weights->id;
    packing.source_dims = weights->view;
    packing.coordinates.assign(
        weights->args.begin(),
        weights->args.begin() + static_cast<std::ptrdiff_t>(weights->view.size()));
    for (const Statement* loop : order) {
      if (loop == nullptr) continue;
      packing.loops.push_back(loop->id);
      const bool is_channel = loop == axes[3].window && is_padded;
      packing.extents.push_back(is_channel ? image->view[3].constant() : loop->extent.constant());
    }
    if (packing.loops.size() == 1) return refuse("weights of one axis");
    packing.limit = packing.extents.front() * packing.extents.back();
    match.packing = std::move(packing);
  }
  std::array<std::int64_t, 2> before{}, after{};
  for (const std::size_t k : {0U, 1U}) {
    const Axis& axis = axes[k + 1];
    const Dim window = extent(axis.window);
    if (!window.is_constant()) return refuse("windows whose size the run decides");
    if (axis.start > 0) return refuse("windows that do not begin at the edge");
    const std::int64_t span = (window.constant() - 1) * axis.dilation + 1;
    before[k] = -axis.start;
    if (before[k] >= span) return refuse("padding wider than the window");
    const std::optional<std::int64_t> padding =
        padding_after(image->view[k + 1], before[k], span, axis.stride, extent(axis.outer));
    if (!padding) return refuse("windows that end before the edge, or padding wider than they are");
    after[k] = *padding;
    if (image->view[k + 1].range().lo < 1 && before[k] + after[k] >= span)
      return refuse("a result of padding alone, if the image is empty");
  }
  const auto is_bias = [&](const Scalar& load) {
    if (nest.buffers[load->id].dtype != nest.buffers[store.id].dtype) return false;
    for (const Statement* loop : contraction.parallel) {
      const auto moved = distance(load, loop->id);
      if (!moved || !(*moved == Dim(loop == outputs ? 1 : 0))) return false;
    }
    return starts_at_zero(load->args, load->view.size());
  };
  const auto is_residual = [&](const Scalar& load) {
    if (nest.buffers[load->id].dtype != nest.buffers[store.id].dtype) return false;
    for (const Statement* loop : contraction.parallel) {
      const auto moved = distance(load, loop->id), result = distance(store, loop->id);
      if (!moved || !(*moved == *result)) return false;
    }
    return starts_at_zero(load->args, load->view.size());
  };
  const auto epilogue = match_epilogue(store, (*contraction.inner)[0].id, is_bias, is_residual);
  if (!epilogue || epilogue->alpha != 1)
    return refuse("the epilogue is not a bias, residual or relu");
  match.call.has_bias = epilogue->bias.is_defined();
  match.call.has_residual = epilogue->residual.is_defined();
  match.call.is_rectified = epilogue->is_rectified;
  match.extents = {extent(axes[0].outer),
                   image->view[1],
                   image->view[2],
                   image->view[3],
                   output_count,
                   extent(axes[1].window),
                   extent(axes[2].window),
                   extent(axes[1].outer),
                   extent(axes[2].outer),
                   before[0],
                   after[0],
                   before[1],
                   after[1],
                   axes[1].stride,
                   axes[2].stride,
                   axes[1].dilation,
                   axes[2].dilation,
                   1};
  match.buffers = {image->id, weights->id};
  if (epilogue->bias.is_defined()) match.buffers.push_back(epilogue->bias->id);
  if (epilogue->residual.is_defined()) match.buffers.push_back(epilogue->residual->id);
  match.buffers.push_back(store.id);
  return match;
}

}  // namespace tenon::codegen::cuda
