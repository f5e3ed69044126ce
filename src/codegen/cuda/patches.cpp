#include "codegen/cuda/patches.h"

#include "base/error.h"
#include "codegen/cuda/inline_copies.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/operand_copy.h"
#include "nests/schedule/loops.h"
#include "nests/stage_writer.h"
#include "nests/stride.h"

#include <algorithm>
#include <set>

namespace tenon::codegen::cuda {
namespace {

using nests::Contraction;
using nests::loop_statement;

const Statement* loop_with(const std::vector<const Statement*>& loops, std::size_t id) {
  const auto found = std::ranges::find(loops, id, [](const Statement* loop) { return loop->id; });
  return found == loops.end() ? nullptr : *found;
}

bool has_constant_extent(const Statement* loop) { return loop->extent.is_constant(); }

// An axis of the image: position = stride * outer + inner + start, where `outer` is a loop of the
// result and `inner` one of the reduction, or one of them alone.
struct PatchAxis {
  const Statement *outer = nullptr, *inner = nullptr;
  std::int64_t stride = 1, start = 0;
  std::int64_t padding = 0;  // positions after the window whose weights are zero

  bool is_window() const { return outer != nullptr && inner != nullptr; }
  std::int64_t extent() const { return inner == nullptr ? 1 : inner->extent.constant(); }
  std::int64_t size() const { return extent() + padding; }
  bool overlaps() const { return is_window() && (stride != extent() || start != 0); }
};

// Overlapping windows multiply the image's size: for images with few channels only, of which
// libraries compute convolutions slowly.
constexpr std::int64_t kMostChannelsOfRows = 4, kMostUnfoldedDepth = 256;

struct Patches {
  Scalar image, weights;
  std::vector<PatchAxis> axes;
  const Statement* outputs = nullptr;

  std::int64_t depth() const {
    std::int64_t count = 1;
    for (const PatchAxis& axis : axes) count *= axis.size();
    return count;
  }
  // Pads the last window until a row of the GEMM is a multiple of the widest access.
  void pad(std::int64_t bytes) {
    constexpr std::int64_t kAccess = 16, kMostPadding = 8;
    PatchAxis& last = *std::find_if(axes.rbegin(), axes.rend(),
                                    [](const PatchAxis& axis) { return axis.is_window(); });
    while (depth() * bytes % kAccess != 0 && last.padding < kMostPadding) ++last.padding;
    if (depth() * bytes % kAccess != 0) last.padding = 0;
    is_padded = last.padding > 0;
  }
  bool is_padded = false;
};

std::optional<PatchAxis> patch_axis(const Scalar& at, const Contraction& contraction) {
  const auto affine = nests::affine_of(at);
  if (!affine) return std::nullopt;
  PatchAxis axis;
  axis.start = affine->start;
  for (const auto& [id, step] : affine->steps) {
    if (const Statement* loop = loop_with(contraction.parallel, id);
        loop && axis.outer == nullptr) {
      axis.outer = loop;
      axis.stride = step;
    } else if (loop = loop_with(contraction.reduction, id);
               loop && axis.inner == nullptr && step == 1) {
      axis.inner = loop;
    } else {
      return std::nullopt;
    }
  }
  if (axis.inner != nullptr && !has_constant_extent(axis.inner)) return std::nullopt;
  const bool is_plain = axis.start == 0 && axis.stride == 1;
  return axis.stride > 0 && (is_plain || axis.is_window()) ? std::optional(axis) : std::nullopt;
}

std::optional<Patches> match_patches(const LoopNest& nest, const Contraction& contraction,
                                     const Scalar& image, const Scalar& weights, Overlap overlap) {
  if (image->id == weights->id || !nests::can_be_repacked(image) ||
      weights->bounds != Bounds::Inside)
    return std::nullopt;
  Patches patches;
  patches.image = image;
  patches.weights = weights;
  std::set<std::size_t> used;
  std::size_t windows = 0, loops = 0;
  std::int64_t channels = 1;
  bool overlaps = false;
  for (std::size_t axis = 0; axis < image->view.size(); ++axis) {
    const auto found = patch_axis(image->args[axis], contraction);
    if (!found) return std::nullopt;
    for (const Statement* loop : {found->outer, found->inner}) {
      if (loop == nullptr) continue;
      used.insert(loop->id);
      ++loops;
    }
    windows += found->is_window() ? 1 : 0;
    channels *= found->is_window() ? 1 : found->extent();
    overlaps |= found->overlaps();
    patches.axes.push_back(*found);
  }
  if (overlaps && (overlap == Overlap::None || channels > kMostChannelsOfRows ||
                   patches.depth() > kMostUnfoldedDepth))
    return std::nullopt;
  if (windows == 0 || used.size() != loops) return std::nullopt;
  for (const Statement* loop : contraction.parallel) {
    if (used.contains(loop->id)) {
      if (nests::depends_on(weights, loop->id)) return std::nullopt;
      continue;
    }
    if (patches.outputs != nullptr || !has_constant_extent(loop)) return std::nullopt;
    patches.outputs = loop;
  }
  const bool reduces_all = std::ranges::all_of(
      contraction.reduction, [&](const Statement* loop) { return used.contains(loop->id); });
  std::size_t loads = 0;
  nests::for_each_load(nest.body, [&](const Scalar& load) { loads += load->id == weights->id; });
  const bool can_pack = loads == 1 && std::ranges::all_of(weights->args, [](const Scalar& at) {
                          return nests::affine_of(at).has_value();
                        });
  if (patches.outputs == nullptr || !reduces_all || !can_pack) return std::nullopt;
  patches.pad(static_cast<std::int64_t>(info(nest.buffers[image->id].dtype).storage_bytes));
  return patches;
}

Scalar patch_load(std::size_t buffer, DType dtype, Dims view, std::vector<Scalar> at) {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = dtype;
  node.id = buffer;
  node.view = std::move(view);
  node.args = std::move(at);
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

class PatchRewriter {
 public:
  PatchRewriter(NestSequence& sequence, const NestSequence::NestCall& part,
                const Contraction& contraction, Patches patches)
      : sequence_(sequence), part_(part), contraction_(contraction), p_(std::move(patches)) {}

  SpaceToDepth run() {
    made_.contraction = part_;
    LoopNest& nest = made_.contraction.nest;
    const std::size_t depth = nest.new_loop("d");
    Dims rows;
    std::vector<Scalar> at;
    for (const PatchAxis& axis : p_.axes) {
      if (axis.outer == nullptr) continue;
      rows.push_back(axis.outer->extent);
      at.push_back(loop_scalar(axis.outer->id));
    }
    rows.emplace_back(p_.depth());
    at.push_back(loop_scalar(depth));
    const std::size_t image = add_buffer(p_.image->id, rows);
    copy_image(sequence_.buffers.size() - 1);
    const Dims matrix = {p_.outputs->extent, p_.depth()};
    const std::size_t weights = add_buffer(p_.weights->id, matrix);
    made_.weights = nests::buffer_of(part_, p_.weights->id);
    made_.laid_weights = sequence_.buffers.size() - 1;
    pack_weights();
    const Scalar row = patch_load(image, p_.image->dtype, rows, std::move(at)),
                 column = patch_load(weights, p_.weights->dtype, matrix,
                                     {loop_scalar(p_.outputs->id), loop_scalar(depth)});
    const Statement* fold = &(*contraction_.inner)[1];
    while (fold->kind == Statement::Kind::Loop) fold = &fold->body.front();
    const bool is_first = contraction_.a->id == p_.image->id;
    Statement summed = *fold;
    summed.value = binary_scalar(BinaryOp::Multiply, fold->value->dtype,
                                 nests::with_load(fold->value->args[0], is_first ? row : column),
                                 nests::with_load(fold->value->args[1], is_first ? column : row));
    Block inner{(*contraction_.inner)[0],
                loop_statement(depth, p_.depth(), {std::move(summed)}, false)};
    inner.insert(inner.end(), contraction_.inner->begin() + 2, contraction_.inner->end());
    nest.body = nests::in_loops(contraction_.parallel, std::move(inner));
    list_extents(nest);
    nests::drop_unused_buffers(made_.contraction);
    return std::move(made_);
  }

 private:
  std::size_t add_buffer(std::size_t like, const Dims& dims) {
    const DType dtype = part_.nest.buffers[like].dtype;
    const std::size_t number = sequence_.buffers.size();
    sequence_.buffers.push_back({NestSequence::BufferRole::Temporary, 0, dtype, dims});
    LoopNest& nest = made_.contraction.nest;
    nest.buffers.push_back({concat("m", number), dtype, dims, StorageClass::Operand});
    made_.contraction.buffers.push_back(number);
    return nest.buffers.size() - 1;
  }

  // True if the last two axes are a window and its channels: a row of a patch is then contiguous.
  bool has_contiguous_rows() const {
    const std::size_t rank = p_.axes.size();
    if (rank < 2) return false;
    const PatchAxis &columns = p_.axes[rank - 2], &channels = p_.axes[rank - 1];
    return columns.is_window() && channels.outer == nullptr &&
           Dim(channels.size()) == p_.image->view[rank - 1];
  }

  // for rows, for elements of a patch { rows[row, element] = image[...] }
  void copy_image(std::size_t number) {
    const NestBuffer& from = part_.nest.buffers[p_.image->id];
    NestSequence::NestCall copy;
    copy.nest.name = part_.nest.name + "_patches";
    copy.nest.buffers = {{"y0", from.dtype, sequence_.buffers[number].dims, StorageClass::Result},
                         {from.name, from.dtype, from.dims, StorageClass::Operand}};
    copy.buffers = {number, nests::buffer_of(part_, p_.image->id)};
    Dims source = p_.image->view;
    std::vector<std::int64_t> sizes, strides, starts;
    for (const PatchAxis& axis : p_.axes) {
      sizes.push_back(axis.size());
      strides.push_back(axis.stride);
      starts.push_back(axis.start);
    }
    if (has_contiguous_rows()) {
      const std::int64_t channels = sizes.back();
      for (auto* list : {&sizes, &strides, &starts}) {
        list->pop_back();
        list->back() *= channels;
      }
      source.pop_back();
      source.back() = source.back() * Dim(channels);
    }
    Dims view;
    std::vector<Scalar> place, at(source.size(), integer_scalar(0));
    const auto add_loop = [&](const Dim& extent) {
      view.push_back(extent);
      place.push_back(loop_scalar(copy.nest.new_loop(concat("i", place.size()))));
      return place.back();
    };
    for (std::size_t axis = 0; axis < source.size(); ++axis) {
      if (const Statement* outer = p_.axes[axis].outer)
        at[axis] = times(add_loop(outer->extent), integer_scalar(strides[axis]));
    }
    for (std::size_t axis = 0; axis < source.size(); ++axis) {
      if (sizes[axis] > 1) at[axis] = plus(at[axis], add_loop(sizes[axis]));
      at[axis] = plus(at[axis], integer_scalar(starts[axis]));
    }
    Scalar read = patch_load(1, p_.image->dtype, source, at);
    if (p_.image->bounds == Bounds::Fill || p_.is_padded) {
      ScalarNode node = read.node();
      node.bounds = Bounds::Fill;
      node.args.push_back(literal_scalar(p_.image->dtype, 0, 0));
      read = Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }
    Statement store;
    store.kind = Statement::Kind::Store;
    store.id = 0;
    store.view = view;
    store.indices = place;
    store.value = std::move(read);
    Block body{std::move(store)};
    for (std::size_t k = view.size(); k-- > 0;)
      body = {loop_statement(k, view[k], std::move(body), true)};
    copy.nest.body = std::move(body);
    list_extents(copy.nest);
    made_.copies.push_back(std::move(copy));
  }

  void pack_weights() {
    nests::Packing& packing = made_.packing;
    packing.source_dims = p_.weights->view;
    packing.coordinates.assign(
        p_.weights->args.begin(),
        p_.weights->args.begin() + static_cast<std::ptrdiff_t>(p_.weights->view.size()));
    packing.loops = {p_.outputs->id};
    packing.extents = {p_.outputs->extent.constant()};
    for (const PatchAxis& axis : p_.axes) {
      if (axis.inner == nullptr) continue;
      packing.loops.push_back(axis.inner->id);
      packing.extents.push_back(axis.size());
    }
    packing.limit = packing.extents.front() * packing.extents.back();
  }

  NestSequence& sequence_;
  const NestSequence::NestCall& part_;
  const Contraction& contraction_;
  const Patches p_;
  SpaceToDepth made_;
};

}  // namespace

std::optional<SpaceToDepth> patches_as_rows(NestSequence& sequence,
                                            const NestSequence::NestCall& part,
                                            const Contraction& contraction,
                                            const std::vector<bool>& is_constant, Overlap overlap) {
  for (const bool is_first : {true, false}) {
    const Scalar &image = is_first ? contraction.a : contraction.b,
                 &weights = is_first ? contraction.b : contraction.a;
    const std::size_t constant = nests::buffer_of(part, weights->id);
    if (constant >= is_constant.size() || !is_constant[constant]) continue;
    if (auto patches = match_patches(part.nest, contraction, image, weights, overlap))
      return PatchRewriter(sequence, part, contraction, std::move(*patches)).run();
  }
  return std::nullopt;
}

}  // namespace tenon::codegen::cuda
