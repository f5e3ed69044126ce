#include "codegen/cuda/library_match.h"

#include "codegen/cuda/gemm_match.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/loop_stride.h"

#include <algorithm>
#include <functional>

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

// Returns the operands of a binary expression: first the one that holds the local.
struct Operands {
  const Scalar *sum, *other;
};
std::optional<Operands> operands_of(const Scalar& scalar, BinaryOp op, std::size_t local) {
  if (scalar->kind != ScalarKind::Binary || scalar->binary != op) return std::nullopt;
  const bool is_first = holds_local(scalar->args[0], local);
  return Operands{&without_casts(scalar->args[is_first ? 0 : 1]),
                  &without_casts(scalar->args[is_first ? 1 : 0])};
}

// Matches activation(alpha t + residual + bias), with the terms in any order. A residual moves like
// the result along all loops; a bias along those that `is_column` accepts, and not at all along the
// others. An undefined `is_column` permits no bias.
std::optional<Epilogue> match_epilogue(const LoopNest& nest, const Contraction& contraction,
                                       const Statement& store,
                                       const std::function<bool(const Statement&)>& is_column) {
  const auto moves_like_result = [&](const Scalar& load, bool is_bias) {
    if (nest.buffers[load->id].dtype != nest.buffers[store.id].dtype) return false;
    for (const Statement* loop : contraction.parallel) {
      const auto step = distance(load, loop->id), result = distance(store, loop->id);
      const bool is_still = is_bias && !is_column(*loop);
      if (!step || !(*step == (is_still ? Dim(0) : *result))) return false;
    }
    return starts_at_zero(load->args, load->view.size());
  };
  Epilogue epilogue;
  const std::size_t local = (*contraction.inner)[0].id;
  const Scalar* value = &without_casts(store.value);
  if (const auto most = operands_of(*value, BinaryOp::Maximum, local)) {
    if ((*most->other)->kind != ScalarKind::Real || (*most->other)->real != 0) return std::nullopt;
    epilogue.is_rectified = true;
    value = most->sum;
  }
  while (const auto sum = operands_of(*value, BinaryOp::Add, local)) {
    const Scalar& term = *sum->other;
    if (term->kind != ScalarKind::Load || term->bounds != Bounds::Inside) return std::nullopt;
    if (!epilogue.bias.is_defined() && is_column && moves_like_result(term, true)) {
      epilogue.bias = term;
    } else if (!epilogue.residual.is_defined() && moves_like_result(term, false)) {
      epilogue.residual = term;
    } else {
      return std::nullopt;
    }
    value = sum->sum;
  }
  if (const auto product = operands_of(*value, BinaryOp::Multiply, local)) {
    if ((*product->other)->kind != ScalarKind::Real) return std::nullopt;
    epilogue.alpha = (*product->other)->real;
    value = product->sum;
  }
  if ((*value)->kind != ScalarKind::Local || (*value)->id != local) return std::nullopt;
  return epilogue;
}

// Completes a match: operands, epilogue and result.
void set_operands(const Scalar& a, const Scalar& b, const Epilogue& epilogue,
                  const Statement& store, LibraryMatch& match) {
  match.call.has_bias = epilogue.bias.is_defined();
  match.call.has_residual = epilogue.residual.is_defined();
  match.call.is_rectified = epilogue.is_rectified;
  match.call.alpha = epilogue.alpha;
  match.buffers = {a->id, b->id};
  for (const Scalar& load : {epilogue.bias, epilogue.residual}) {
    if (load.is_defined()) match.buffers.push_back(load->id);
  }
  match.buffers.push_back(store.id);
}

// Starts a match of one sum with one result, whose types a library supports.
LibraryMatch started(LibraryCall::Kind kind, const LoopNest& nest, const Contraction& contraction,
                     const std::optional<Statement>& store) {
  if (!store) return refuse("more than one result");
  if (!starts_from_zero((*contraction.inner)[0]))
    return refuse("the accumulator does not start at zero");
  LibraryMatch match;
  match.call.kind = kind;
  match.refusal = note_types(nest, contraction, *store, match.call);
  if (match.refusal.empty() && kind != LibraryCall::Kind::Matmul &&
      match.call.result_dtype != match.call.dtype)
    return refuse("a result of another type");
  return match;
}

// Requests constant weights in the order of the call by packing them, others by a copy.
void request_weights(const WindowMatch& windows, bool are_constant, LibraryMatch& match) {
  // Zero-padded channels need a loop to pack along.
  if (are_constant && !(windows.is_padded && windows.channels == nullptr)) {
    match.packing = windows.packing();
    if (!match.packing) match.refusal = "weights of one axis";
    return;
  }
  match.refusal = "weights that are laid out otherwise and no constants";
  const Scalar& weights = windows.other;
  const std::size_t rank = weights->view.size();
  std::vector<const Statement*> loops = {windows.outputs, windows.axes[0].tap, windows.axes[1].tap,
                                         windows.channels};
  // Weights of one-dimensional images have one window axis.
  if (rank == 3) std::erase_if(loops, [&](auto* loop) { return !loop && loops.size() > rank; });
  if (rank != loops.size()) return;
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
  // If the layout already matches, a copy would not change it.
  if (!windows.is_padded && std::is_sorted(axes.begin(), axes.end())) return;
  match.request.load = weights;
  match.request.axes = std::move(axes);
  match.request.channels = windows.is_padded ? windows.channel_count : 0;
}

// Completes the match of a gradient.
LibraryMatch with_windows(LibraryMatch match, WindowMatch windows, const Statement& store) {
  match.refusal = std::move(windows.refusal);
  match.request = std::move(windows.request);
  if (!match.refusal.empty()) return match;
  match.extents = windows.extents();
  set_operands(windows.image, windows.other, {}, store, match);
  return match;
}

// True if the store writes more than casts of the sum.
bool has_epilogue(const Contraction& contraction, const Statement& store) {
  const Scalar* value = &store.value;
  while ((*value)->kind == ScalarKind::Cast) value = &(*value)->args[0];
  return (*value)->kind != ScalarKind::Local || (*value)->id != (*contraction.inner)[0].id;
}

}  // namespace

LibraryMatch match_matmul(const LoopNest& nest, const Contraction& contraction) {
  const std::optional<Statement> store = only_store(contraction);
  LibraryMatch match = started(LibraryCall::Kind::Matmul, nest, contraction, store);
  if (!match.refusal.empty()) return match;
  const GemmMatch product = match_gemm(contraction, *store);
  if (!product.refusal.empty()) return refuse(product.refusal);
  match.is_split = product.is_split;
  // Below this size the launch overhead of a library dominates.
  const Dim work = product.m * product.n * product.k * product.batch;
  if (work.is_constant() && work.constant() < 1 << 14) {
    match = refuse("few products");
    match.is_small = true;
    return match;
  }
  std::function<bool(const Statement&)> is_column;
  if (!product.is_swapped) {
    is_column = [&](const Statement& loop) {
      return *distance(contraction.a, loop.id) == Dim(0) &&
             !(*distance(contraction.b, loop.id) == Dim(0));
    };
  }
  const auto epilogue = match_epilogue(nest, contraction, *store, is_column);
  if (!epilogue) return refuse("the epilogue is not a bias, residual or relu");
  // The runtime skips empty results and fills results of empty sums with zeros.
  const bool is_plain = !epilogue->bias.is_defined() && !epilogue->residual.is_defined();
  if (product.k.range().lo < 1 && !is_plain)
    return refuse("an epilogue of a sum that may be empty");
  match.call.is_a_transposed = product.is_a_transposed;
  match.call.is_b_transposed = product.is_b_transposed;
  match.extents = {product.batch,     product.m,      product.n,         product.k,
                   product.a_leading, product.a_step, product.b_leading, product.b_step,
                   product.y_leading, product.y_step, product.y_leading, product.y_step};
  set_operands(product.a, product.b, *epilogue, *store, match);
  return match;
}

LibraryMatch match_convolution(const LoopNest& nest, const Contraction& contraction,
                               const std::vector<bool>& is_constant, ChannelPadding padding) {
  const std::optional<Statement> store = only_store(contraction);
  LibraryMatch match = started(LibraryCall::Kind::Convolution, nest, contraction, store);
  if (!match.refusal.empty()) return match;
  const WindowMatch windows =
      match_windows(contraction, *store, padding, channel_granularity(match.call.dtype));
  match.refusal = windows.refusal;
  match.request = windows.request;
  if (match.refusal.empty() && windows.group_count != 1) match.refusal = "groups of channels";
  if (match.refusal.empty() && !windows.has_weight_layout)
    request_weights(windows, is_constant[windows.other->id], match);
  if (!match.refusal.empty()) return match;
  const auto epilogue = match_epilogue(
      nest, contraction, *store, [&](const Statement& loop) { return &loop == windows.outputs; });
  if (!epilogue || epilogue->alpha != 1)
    return refuse("the epilogue is not a bias, residual or relu");
  match.extents = windows.extents();
  set_operands(windows.image, windows.other, *epilogue, *store, match);
  return match;
}

LibraryMatch match_weight_gradient(const LoopNest& nest, const Contraction& contraction,
                                   ChannelPadding padding) {
  const std::optional<Statement> store = only_store(contraction);
  LibraryMatch match = started(LibraryCall::Kind::WeightGradient, nest, contraction, store);
  if (!match.refusal.empty()) return match;
  if (has_epilogue(contraction, *store)) return refuse("the contraction has an epilogue");
  WindowMatch windows = match_weight_gradient_windows(contraction, *store, padding,
                                                      channel_granularity(match.call.dtype));
  if (windows.refusal.empty() && !windows.has_weight_layout) {
    windows.refusal = "weights that are laid out otherwise";
    for (const Statement* loop :
         {windows.outputs, windows.axes[0].tap, windows.axes[1].tap, windows.channels}) {
      if (loop != nullptr) windows.request.result_order.push_back(loop);
    }
    windows.request.result_channels = windows.is_padded ? windows.channel_count : 0;
    windows.request.has_channel_loop = windows.channels != nullptr;
  }
  return with_windows(std::move(match), std::move(windows), *store);
}

LibraryMatch match_data_gradient(const LoopNest& nest, const Contraction& contraction) {
  const std::optional<Statement> store = only_store(contraction);
  LibraryMatch match = started(LibraryCall::Kind::DataGradient, nest, contraction, store);
  if (!match.refusal.empty()) return match;
  if (has_epilogue(contraction, *store)) return refuse("the contraction has an epilogue");
  return with_windows(std::move(match), match_data_gradient_windows(contraction, *store), *store);
}

}  // namespace tenon::codegen::cuda
