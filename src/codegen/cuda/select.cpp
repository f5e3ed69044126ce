#include "codegen/cuda/select.h"

#include "base/error.h"
#include "codegen/cuda/attention.h"
#include "codegen/cuda/canonicalize_loops.h"
#include "codegen/cuda/convolution.h"
#include "codegen/cuda/gemm.h"
#include "codegen/cuda/gemm_match.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/library_match.h"
#include "codegen/cuda/loop_packing.h"
#include "codegen/cuda/loop_stride.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/patches.h"
#include "codegen/cuda/space_to_depth.h"
#include "codegen/cuda/weight_gradient.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/operand_copy.h"
#include "nests/schedule/loops.h"
#include "nests/stage_writer.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <map>

namespace tenon::codegen::cuda {
namespace {

// True if every use of the sum rounds it to a narrow type.
bool is_rounded_to(DType narrow, const Scalar& value, std::size_t local) {
  if (value->kind == ScalarKind::Local) return value->id != local;
  if (value->kind == ScalarKind::Cast && value->dtype == narrow &&
      value->args[0]->kind == ScalarKind::Local)
    return true;
  return std::all_of(value->args.begin(), value->args.end(),
                     [&](const Scalar& arg) { return is_rounded_to(narrow, arg, local); });
}

// Type in which the sum may be stored: the type of its factors if all uses round to it, else its
// own.
DType kept_type(const LoopNest& nest, const nests::Contraction& contraction,
                const Statement& store) {
  const std::size_t local = (*contraction.inner)[0].id;
  const DType narrow = nest.buffers[contraction.a->id].dtype;
  const bool is_stored_so =
      store.value->kind == ScalarKind::Local && nest.buffers[store.id].dtype == narrow;
  return is_stored_so || is_rounded_to(narrow, store.value, local) ? narrow : nest.locals[local];
}

// Splits a nest into the bare contraction, into a buffer indexed by these loops, and a nest for its
// epilogue.
std::vector<NestSequence::NestCall> split_epilogue(NestSequence& sequence,
                                                   const NestSequence::NestCall& part,
                                                   const nests::Contraction& contraction,
                                                   const LayoutRequest& request) {
  const std::vector<const Statement*>& order =
      request.result_order.empty() ? contraction.parallel : request.result_order;
  const std::size_t local = (*contraction.inner)[0].id;
  const std::optional<Statement> only = only_store(contraction);
  const DType dtype = only ? kept_type(part.nest, contraction, *only) : part.nest.locals[local];
  Dims dims;
  std::vector<Scalar> position;
  for (const Statement* loop : order) {
    dims.push_back(loop->extent);
    position.push_back(loop_scalar(loop->id));
  }
  if (request.result_channels != 0) {
    if (!request.has_channel_loop) {
      dims.push_back(1);
      position.push_back(integer_scalar(0));
    }
    dims.back() = request.result_channels;
  }
  const std::size_t temporary = sequence.buffers.size();
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, dtype, dims});
  const auto with_buffer = [&](StorageClass storage) {
    NestSequence::NestCall copy = part;
    copy.nest.buffers.push_back({concat("m", temporary), dtype, dims, storage});
    copy.buffers.push_back(temporary);
    return copy;
  };
  NestSequence::NestCall first = with_buffer(StorageClass::Result),
                         second = with_buffer(StorageClass::Operand);
  const std::size_t id = part.nest.buffers.size();
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = id;
  store.value = local_scalar(local, part.nest.locals[local]);
  store.indices = position;
  store.view = dims;
  first.nest.body =
      nests::in_loops(order, {(*contraction.inner)[0], (*contraction.inner)[1], std::move(store)});
  ScalarNode load;
  load.kind = ScalarKind::Load;
  load.dtype = dtype;
  load.id = id;
  load.args = position;
  load.view = dims;
  const Scalar kept(std::make_shared<const ScalarNode>(std::move(load)));
  Block rest{nests::define_statement(local, nests::cast_scalar(kept, part.nest.locals[local]))};
  rest.insert(rest.end(), contraction.inner->begin() + 2, contraction.inner->end());
  second.nest.body = nests::in_loops(contraction.parallel, std::move(rest));
  second.nest.name += "_epilogue";
  for (NestSequence::NestCall* made : {&first, &second}) {
    list_extents(made->nest);
    nests::drop_unused_buffers(*made);
  }
  return {std::move(first), std::move(second)};
}

// Splits a nest into a nest that permutes (and pads) an image, and a nest that reads the copy.
std::vector<NestSequence::NestCall> split_copy(NestSequence& sequence,
                                               const NestSequence::NestCall& part,
                                               const Scalar& image,
                                               const std::vector<std::size_t>& order,
                                               std::int64_t channels) {
  const NestBuffer source = part.nest.buffers[image->id];
  Dims dims;
  for (const std::size_t axis : order) dims.push_back(image->view[axis]);
  const bool is_padded = channels != 0;
  if (is_padded) dims.back() = channels;
  const std::size_t temporary = sequence.buffers.size();
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, source.dtype, dims});
  std::size_t given = 0;
  for (std::size_t k = 0; k < image->id; ++k)
    given += part.nest.buffers[k].storage != StorageClass::Scratch;

  NestSequence::NestCall copy;
  copy.nest.name = part.nest.name + "_channels_last";
  copy.nest.buffers = {{"y0", source.dtype, dims, StorageClass::Result},
                       {source.name, source.dtype, source.dims, StorageClass::Operand}};
  copy.buffers = {temporary, part.buffers[given]};
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 0;
  store.view = dims;
  ScalarNode load;
  load.kind = ScalarKind::Load;
  load.dtype = image->dtype;
  load.id = 1;
  load.view = image->view;
  load.args.resize(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Scalar position = loop_scalar(copy.nest.new_loop(concat("i", k)));
    store.indices.push_back(position);
    load.args[order[k]] = position;
  }
  if (is_padded) {
    load.bounds = Bounds::Fill;
    load.args.push_back(literal_scalar(image->dtype, 0, 0));
  }
  store.value = Scalar(std::make_shared<const ScalarNode>(std::move(load)));
  Block body{std::move(store)};
  for (std::size_t k = order.size(); k-- > 0;)
    body = {nests::loop_statement(k, dims[k], std::move(body), true)};
  copy.nest.body = std::move(body);
  list_extents(copy.nest);

  NestSequence::NestCall rest = part;
  const std::size_t id = rest.nest.buffers.size();
  rest.nest.buffers.push_back({concat("m", temporary), source.dtype, dims, StorageClass::Operand});
  rest.buffers.push_back(temporary);
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == image->id && node.view == image->view) {
      std::vector<Scalar> args;
      for (const std::size_t axis : order) args.push_back(node.args[axis]);
      args.insert(args.end(), node.args.begin() + static_cast<std::ptrdiff_t>(node.view.size()),
                  node.args.end());
      node.args = std::move(args);
      node.view = dims;
      node.id = id;
    }
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  rewriting.apply(rest.nest.body);
  list_extents(rest.nest);
  nests::drop_unused_buffers(rest);
  return {std::move(copy), std::move(rest)};
}

DeviceKernel by_loops(NestSequence::NestCall part, std::string refusal) {
  drop_unit_loops(part.nest.body);
  collapse_odd_loops(part.nest);
  list_extents(part.nest);
  DeviceKernel kernel;
  kernel.part = std::move(part);
  kernel.candidate = "loops";
  kernel.refusal = std::move(refusal);
  return kernel;
}

// True if a library or tensor-core kernel was selected.
bool has_gemm(const std::vector<DeviceKernel>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(), [](const DeviceKernel& kernel) {
    return kernel.library.has_value() || is_on_tensor_cores(kernel.candidate);
  });
}

DeviceKernel on_tensor_cores(NestSequence::NestCall part, const CudaTarget& target) {
  DeviceKernel kernel;
  kernel.part = std::move(part);
  kernel.candidate = target.has_wgmma() ? kWgmma : kMma;
  return kernel;
}

// For each buffer of a nest: its position among the given buffers, and whether it is constant.
struct GivenBuffers {
  std::vector<std::size_t> place_of;
  std::vector<bool> is_constant;

  GivenBuffers(const NestSequence::NestCall& part,
               const std::vector<bool>& is_constant_in_sequence) {
    std::size_t given = 0;
    for (const NestBuffer& buffer : part.nest.buffers) {
      const bool is_given = buffer.storage != StorageClass::Scratch;
      place_of.push_back(given);
      is_constant.push_back(is_given && part.buffers[given] < is_constant_in_sequence.size() &&
                            is_constant_in_sequence[part.buffers[given]]);
      given += is_given;
    }
  }
};

// Returns the part with a constant operand in a packed layout.
NestSequence::NestCall with_packing(const NestSequence::NestCall& part,
                                    const nests::Packing& packing) {
  NestSequence::NestCall laid = part;
  Dims dims;
  std::vector<Scalar> at;
  for (std::size_t k = 0; k < packing.loops.size(); ++k) {
    dims.push_back(packing.extents[k]);
    at.push_back(loop_scalar(packing.loops[k]));
  }
  laid.nest.buffers[packing.buffer].dims = dims;
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == packing.buffer) {
      node.view = dims;
      node.args = at;
    }
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  rewriting.apply(laid.nest.body);
  return laid;
}

DeviceKernel packed_on_tensor_cores(NestSequence::NestCall laid, const nests::Packing& packing,
                                    const GivenBuffers& given, const CudaTarget& target) {
  DeviceKernel kernel = on_tensor_cores(std::move(laid), target);
  kernel.packings.push_back(packing);
  kernel.packings.back().buffer = given.place_of[packing.buffer];
  return kernel;
}

// True if wgmma or mma tiles of the target match.
bool is_gemm_tile(const LoopNest& nest, const CudaTarget& target) {
  if (target.has_wgmma()) return match_gemm_tile(nest, target).has_value();
  const std::optional<MmaTile> tile = match_mma(nest, target);
  return tile && !tile->convolution;
}
// For mma.sync convolutions of floats, libraries are faster.
bool is_convolution_tile(const LoopNest& nest, const CudaTarget& target) {
  if (target.has_wgmma()) return match_convolution_tile(nest, target).has_value();
  const std::optional<MmaTile> tile = match_mma(nest, target);
  return tile && tile->convolution && (!target.uses_libraries || tile->gemm.has_bytes());
}

// Selects a convolution on tensor cores; packs constant weights at compile time.
std::optional<DeviceKernel> convolution_kernel(const NestSequence::NestCall& part,
                                               const nests::Contraction& contraction,
                                               const GivenBuffers& given,
                                               const CudaTarget& target) {
  const std::optional<Statement> store = only_store(contraction);
  if (!(target.has_wgmma() || target.has_mma()) || !store) return std::nullopt;
  if (is_convolution_tile(part.nest, target)) return on_tensor_cores(part, target);
  const WindowMatch windows = match_windows(contraction, *store);
  const bool can_be_packed =
      windows.refusal.empty() && !windows.has_weight_layout && given.is_constant[windows.other->id];
  const std::optional<nests::Packing> packing = can_be_packed ? windows.packing() : std::nullopt;
  if (!packing) return std::nullopt;
  NestSequence::NestCall laid = with_packing(part, *packing);
  if (!is_convolution_tile(laid.nest, target)) return std::nullopt;
  return packed_on_tensor_cores(std::move(laid), *packing, given, target);
}

// Selects a grouped convolution; only the mma kernels support groups.
std::optional<DeviceKernel> grouped_kernel(const NestSequence::NestCall& part,
                                           const nests::Contraction& contraction,
                                           const GivenBuffers& given, const CudaTarget& target) {
  CudaTarget fragments = target_for(target, target.uses_tensor_cores);
  fragments.prefers_mma_sync = true;
  std::optional<DeviceKernel> kernel = convolution_kernel(part, contraction, given, fragments);
  if (!kernel || match_mma(kernel->part.nest, fragments)->groups == 1) return std::nullopt;
  return kernel;
}

// Selects a GEMM on tensor cores. If columns must not be contiguous, a constant operand is
// transposed at compile time.
std::optional<DeviceKernel> gemm_kernel(const NestSequence::NestCall& part,
                                        const nests::Contraction& contraction,
                                        const GivenBuffers& given, const CudaTarget& target) {
  if (is_gemm_tile(part.nest, target)) return on_tensor_cores(part, target);
  const std::optional<Statement> store = only_store(contraction);
  if (!store || contraction.reduction.size() != 1) return std::nullopt;
  const GemmMatch gemm = match_gemm(contraction, *store);
  if (!gemm.refusal.empty() || gemm.is_b_transposed || !given.is_constant[gemm.b->id])
    return std::nullopt;
  // Constants with symbolic slices cannot be packed at compile time.
  if (!gemm.n.is_constant() || !gemm.k.is_constant()) return std::nullopt;
  nests::Packing packing;
  packing.buffer = gemm.b->id;
  packing.source_dims = gemm.b->view;
  packing.coordinates.assign(
      gemm.b->args.begin(),
      gemm.b->args.begin() + static_cast<std::ptrdiff_t>(gemm.b->view.size()));
  for (const Statement* loop : contraction.parallel) {
    if (!(*distance(gemm.b, loop->id) == Dim(0))) packing.loops.push_back(loop->id);
  }
  if (packing.loops.size() != 1) return std::nullopt;
  packing.loops.push_back(contraction.reduction.front()->id);
  packing.extents = {gemm.n.constant(), gemm.k.constant()};
  packing.limit = packing.extents.front() * packing.extents.back();
  NestSequence::NestCall laid = with_packing(part, packing);
  if (!is_gemm_tile(laid.nest, target)) return std::nullopt;
  return packed_on_tensor_cores(std::move(laid), packing, given, target);
}

std::vector<DeviceKernel> select_folded(NestSequence& sequence, const NestSequence::NestCall& part,
                                        const nests::Contraction& contraction,
                                        const std::vector<bool>& is_constant,
                                        const CudaTarget& target);

// Selects kernels for a contraction of bytes: tensor cores if the operands have, or can be copied
// to, the required layout. An image whose padding is not zero is copied including its padding.
std::vector<DeviceKernel> select_for_bytes(NestSequence& sequence,
                                           const NestSequence::NestCall& part,
                                           const nests::Contraction& contraction,
                                           const std::vector<bool>& is_constant,
                                           const CudaTarget& target) {
  if (!target.has_wgmma() && !target.has_mma()) return {by_loops(part, "no tiles of bytes")};
  const GivenBuffers given(part, is_constant);
  if (auto kernel = gemm_kernel(part, contraction, given, target)) return {std::move(*kernel)};
  if (auto kernel = convolution_kernel(part, contraction, given, target))
    return {std::move(*kernel)};
  if (auto kernel = grouped_kernel(part, contraction, given, target)) return {std::move(*kernel)};
  if (std::vector<DeviceKernel> folded =
          select_folded(sequence, part, contraction, is_constant, target);
      !folded.empty())
    return folded;
  // A non-constant matrix is transposed by a copy.
  for (const Scalar& factor : {contraction.a, contraction.b}) {
    if (factor->view.size() != 2 || factor->bounds != Bounds::Inside) continue;
    NestSequence trial = sequence;
    std::vector<NestSequence::NestCall> parts = split_copy(trial, part, factor, {1, 0}, 0);
    if (!is_gemm_tile(parts[1].nest, target)) continue;
    sequence = std::move(trial);
    return {by_loops(std::move(parts[0]), ""), on_tensor_cores(std::move(parts[1]), target)};
  }
  NestSequence trial = sequence;
  std::vector<NestSequence::NestCall> parts = nests::split_byte_padding(trial, part);
  if (parts.size() == 2) {
    nests::drop_unused_buffers(parts[1]);
    const auto padded = nests::find_integer_contraction(parts[1].nest.body);
    if (auto kernel =
            convolution_kernel(parts[1], *padded, GivenBuffers(parts[1], is_constant), target)) {
      sequence = std::move(trial);
      return {by_loops(std::move(parts[0]), ""), std::move(*kernel)};
    }
  }
  return {by_loops(part, "bytes that do not lie as tiles take them")};
}

// True if the match succeeded, or would succeed after a copy.
bool is_of_use(const LibraryMatch& match) {
  return match.refusal.empty() || !match.request.is_empty();
}

// Library kernels that add a residual use tf32 tensor cores for most shapes.
bool drops_digits_for_residual(const LibraryMatch& match, const CudaTarget& target) {
  return match.refusal.empty() && match.call.has_residual && match.call.dtype == "f32" &&
         !target.allows_tf32;
}

std::vector<DeviceKernel> select_for(NestSequence& sequence, const NestSequence::NestCall& part,
                                     const std::vector<bool>& is_constant, const CudaTarget& target,
                                     ChannelPadding channels, int copies = 2);

// Packs constant weights at compile time instead of copying them at run time.
void lay_ahead(const SpaceToDepth& folded, const std::vector<bool>& is_constant,
               std::vector<DeviceKernel>& kernels) {
  if (!folded.weights || *folded.weights >= is_constant.size() || !is_constant[*folded.weights])
    return;
  const std::size_t from = *folded.weights, laid = *folded.laid_weights;
  std::erase_if(kernels, [&](const DeviceKernel& kernel) {
    return !kernel.library && kernel.part.buffers.front() == laid;
  });
  for (DeviceKernel& kernel : kernels) {
    std::vector<std::size_t>& buffers = kernel.part.buffers;
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      if (buffers[k] != laid) continue;
      buffers[k] = from;
      kernel.packings.push_back(folded.packing);
      kernel.packings.back().buffer = k;
    }
  }
}

// Selects scalar loops for a contraction; packs constant weights at compile time.
DeviceKernel contraction_by_loops(const NestSequence::NestCall& part,
                                  const nests::Contraction& contraction, const GivenBuffers& given,
                                  std::string refusal) {
  const auto packing = loop_packing(part.nest, contraction, given.is_constant);
  if (!packing) return by_loops(part, std::move(refusal));
  DeviceKernel kernel = by_loops(with_packing(part, *packing), std::move(refusal));
  kernel.packings.push_back(*packing);
  kernel.packings.back().buffer = given.place_of[packing->buffer];
  return kernel;
}

// Selects a space-to-depth form for few channels, on a library or byte tiles. Returns an empty list
// if neither supports it.
std::vector<DeviceKernel> select_folded(NestSequence& sequence, const NestSequence::NestCall& part,
                                        const nests::Contraction& contraction,
                                        const std::vector<bool>& is_constant,
                                        const CudaTarget& target) {
  NestSequence trial = sequence;
  std::optional<SpaceToDepth> folded =
      patches_as_rows(trial, part, contraction, is_constant, Overlap::None);
  if (!folded) folded = space_to_depth(trial, part, contraction);
  if (!folded)
    folded = patches_as_rows(trial, part, contraction, is_constant, Overlap::FewChannels);
  if (!folded) return {};
  std::vector<DeviceKernel> kernels;
  for (const NestSequence::NestCall& copy : folded->copies) kernels.push_back(by_loops(copy, ""));
  for (DeviceKernel& kernel :
       select_for(trial, folded->contraction, is_constant, target, ChannelPadding::Unpadded))
    kernels.push_back(std::move(kernel));
  if (folded->rest) kernels.push_back(by_loops(*folded->rest, ""));
  if (target.uses_libraries || is_integer(contraction.a->dtype)) {
    if (!has_gemm(kernels)) return {};
    lay_ahead(*folded, is_constant, kernels);
  }
  sequence = std::move(trial);
  return kernels;
}

std::vector<DeviceKernel> select_for(NestSequence& sequence, const NestSequence::NestCall& part,
                                     const std::vector<bool>& is_constant, const CudaTarget& target,
                                     ChannelPadding channels, int copies) {
  if (const auto bytes = nests::find_integer_contraction(part.nest.body);
      bytes && target.has_int8_multiply_add) {
    return select_for_bytes(sequence, part, *bytes, is_constant, target);
  }
  const auto contraction = nests::find_contraction(part.nest);
  if (!contraction) return {by_loops(part, "not a contraction of two operands")};
  // Without libraries only emulation takes this path, for tests.
  if (channels == ChannelPadding::Paddable && (target.uses_libraries || target.is_emulated)) {
    std::vector<DeviceKernel> folded =
        select_folded(sequence, part, *contraction, is_constant, target);
    if (!folded.empty()) return folded;
  }
  const CudaTarget own = target.prefers_tensor_cores ? target_for(target, true) : target;
  if (auto pieces = split_weight_gradient(sequence, part, *contraction, own)) {
    return {on_tensor_cores(std::move((*pieces)[0]), own), by_loops(std::move((*pieces)[1]), "")};
  }
  const GivenBuffers given(part, is_constant);
  std::optional<DeviceKernel> gemm = gemm_kernel(part, *contraction, given, own);
  const bool is_fastest =
      gemm && (!own.uses_libraries ||
               (own.has_wgmma() && beats_library(*match_gemm_tile(gemm->part.nest, own), target)));
  if (is_fastest) return {std::move(*gemm)};
  if (auto kernel = convolution_kernel(part, *contraction, given, own)) return {std::move(*kernel)};
  if (!target.uses_libraries)
    return {contraction_by_loops(part, *contraction, given, "libraries are not wanted")};
  LibraryMatch match = match_matmul(part.nest, *contraction);
  if (match.is_small)
    return {contraction_by_loops(part, *contraction, given, std::move(match.refusal))};
  std::string candidate = "cublaslt";
  if (!match.refusal.empty() || match.is_split) {
    LibraryMatch convolution =
        match_convolution(part.nest, *contraction, given.is_constant, channels);
    if (drops_digits_for_residual(convolution, target))
      convolution = refuse("a residual, with all digits");
    if (convolution.refusal.empty()) {
      match = std::move(convolution);
      candidate = "cudnn";
    } else if (LibraryMatch data = match_data_gradient(part.nest, *contraction);
               convolution.request.result_order.empty() && is_of_use(data)) {
      match = std::move(data);
      candidate = "cudnn";
    } else if (LibraryMatch weights = match_weight_gradient(part.nest, *contraction, channels);
               is_of_use(weights)) {
      match = std::move(weights);
      candidate = "cudnn";
    } else if (!match.refusal.empty()) {
      match.refusal = concat("cublaslt: ", match.refusal, "; cudnn: ", convolution.refusal);
      match.request = convolution.request;
    }
  }
  if (match.refusal.empty()) {
    DeviceKernel kernel;
    kernel.candidate = candidate;
    kernel.part.nest.name = part.nest.name;
    kernel.library = match.call;
    kernel.library->allows_tf32 = target.allows_tf32 && match.call.dtype == "f32";
    kernel.library_extents = match.extents;
    for (std::size_t k = 0; k < match.buffers.size(); ++k) {
      kernel.part.buffers.push_back(part.buffers[given.place_of[match.buffers[k]]]);
      if (match.packing && match.packing->buffer == match.buffers[k]) {
        kernel.packings.push_back(*match.packing);
        kernel.packings.back().buffer = k;
      }
    }
    return {std::move(kernel)};
  }
  // A separate epilogue pass costs less than a library gains when the library has instructions that
  // are faster than mma.sync fragments.
  const bool is_outrun = compute_capability(target.architecture) >= kTileCapability;
  if (gemm && (own.has_wgmma() || !is_outrun)) return {std::move(*gemm)};
  if (target.has_mma() && !is_outrun) {
    if (auto kernel = convolution_kernel(part, *contraction, given, target_for(target, true)))
      return {std::move(*kernel)};
  }
  if (auto kernel = grouped_kernel(part, *contraction, given, target)) return {std::move(*kernel)};
  if (!match.request.result_order.empty()) {
    NestSequence trial = sequence;
    std::vector<NestSequence::NestCall> parts =
        split_epilogue(trial, part, *contraction, match.request);
    std::vector<DeviceKernel> kernels =
        select_for(trial, parts[0], is_constant, target, channels, copies);
    if (has_gemm(kernels)) {
      sequence = std::move(trial);
      kernels.push_back(by_loops(std::move(parts[1]), ""));
      return kernels;
    }
  }
  // Image and weights may each be copied once.
  if (match.request.load.is_defined() && copies > 0) {
    NestSequence trial = sequence;
    std::vector<NestSequence::NestCall> parts =
        split_copy(trial, part, match.request.load, match.request.axes, match.request.channels);
    const ChannelPadding copied =
        match.request.channels != 0 ? ChannelPadding::Padded : ChannelPadding::Unpadded;
    std::vector<DeviceKernel> kernels =
        select_for(trial, parts[1], is_constant, target, copied, copies - 1);
    if (has_gemm(kernels)) {
      sequence = std::move(trial);
      kernels.insert(kernels.begin(), by_loops(std::move(parts[0]), ""));
      return kernels;
    }
    if (match.request.channels != 0) {
      return select_for(sequence, part, is_constant, target, ChannelPadding::Unpadded, copies);
    }
  }
  // A library may support the contraction without its epilogue, or with the factors' type as
  // result.
  const bool has_epilogue =
      contraction->inner->size() != 3 || (*contraction->inner)[2].value->kind != ScalarKind::Local;
  const std::optional<Statement> only = only_store(*contraction);
  const bool is_retyped =
      only && kept_type(part.nest, *contraction, *only) != part.nest.buffers[only->id].dtype;
  if (has_epilogue || is_retyped) {
    NestSequence trial = sequence;
    std::vector<NestSequence::NestCall> parts = split_epilogue(trial, part, *contraction, {});
    std::vector<DeviceKernel> kernels =
        select_for(trial, parts[0], is_constant, target, channels, copies);
    if (has_gemm(kernels)) {
      sequence = std::move(trial);
      kernels.push_back(by_loops(std::move(parts[1]), ""));
      return kernels;
    }
  }
  return {contraction_by_loops(part, *contraction, given, match.refusal)};
}

}  // namespace

bool CudaTarget::has_mma() const {
  return uses_tensor_cores && !has_wgmma() &&
         compute_capability(architecture) >= kFragmentCapability;
}

CudaTarget target_for(const CudaTarget& target, bool is_on_tensor_cores) {
  CudaTarget made = target;
  made.uses_tensor_cores = is_on_tensor_cores;
  // For forced tensor cores the size thresholds against libraries do not apply.
  if (is_on_tensor_cores) made.uses_libraries = false;
  return made;
}

std::vector<DeviceKernel> select_kernels(NestSequence& sequence, const NestSequence::NestCall& part,
                                         const std::vector<bool>& is_constant,
                                         const CudaTarget& target) {
  if (match_attention(part.nest)) {
    DeviceKernel kernel;
    kernel.part = part;
    kernel.candidate = "attention";  // op-name: a kernel's name, not an operator's
    return {std::move(kernel)};
  }
  return select_for(sequence, part, is_constant, target, ChannelPadding::Paddable);
}

}  // namespace tenon::codegen::cuda
