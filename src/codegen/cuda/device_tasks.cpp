#include "codegen/cuda/device_tasks.h"

#include "base/error.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/candidates.h"
#include "codegen/cuda/select.h"
#include "expr/node_label.h"
#include "nests/work_shares.h"

#include <algorithm>
#include <optional>

namespace tenon::codegen::cuda {
namespace {

// A kernel for one nest of a node, with the symbol range of the selected version.
struct SelectedKernel {
  DeviceKernel kernel;
  double flops = 0;
  Version version = {};
};
// Kernels of one nest in order of execution, and the decision record if requested.
struct SelectedKernels {
  std::vector<SelectedKernel> kernels;
  std::optional<Decision> decision;
};

class DeviceTasks : public TaskWriter {
 public:
  DeviceTasks(const TaskContext& context, const CudaTarget& device)
      : TaskWriter(context), device_(device) {}

  void add_tasks(NodeId id, const std::vector<ValueId>& results, NodeNests& nests_of_node,
                 const std::vector<Guards>& guards) override {
    const Node& node = graph_.node(id);
    const Footprint& footprint = nests_of_node.footprint;
    const std::vector<bool> is_constant = constants_among(node, nests_of_node.sequence);
    nests::NestWork work{nests_of_node.sequence, is_constant, {}, node_label(graph_, id)};
    nests::run_passes(target_.nest_passes(false), work, options_.nest_passes);
    NestSequence& sequence = work.sequence;
    const std::vector<NestSequence::NestCall> parts = sequence.parts;
    std::vector<const LoopNest*> nests;
    for (const NestSequence::NestCall& part : parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    std::vector<SelectedKernels> selected;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const double flops = footprint.flops.is_constant()
                               ? shares[k] * static_cast<double>(footprint.flops.constant())
                               : 0;
      selected.push_back(select_for(id, sequence, parts[k], is_constant, flops));
    }
    const std::vector<std::uint32_t> ids = buffer_ids(node, results, sequence, {});
    for (SelectedKernels& part : selected) {
      const std::size_t first_step = shared_.step_count;
      for (const SelectedKernel& each : part.kernels) add_task(id, results, each, ids, guards);
      if (!part.decision || !options_.keeps_record) continue;
      part.decision->first_step = first_step;
      part.decision->step_count = shared_.step_count - first_step;
      shared_.decisions.push_back(std::move(*part.decision));
    }
  }

  void add_copy(LoopNest nest, TaskList::Call call, TaskList::Task task) override {
    note_lookups(nest, call.buffers);
    set_kernel(nest, "copy", "", call);
    note_uses(nest, call, task);
    task.alternatives.push_back({"loops", {}, {std::move(call)}});
    list_.tasks.push_back(std::move(task));
  }

 private:
  // Selects the kernels of a nest by the cost model, or by the callback in the options.
  SelectedKernels select_for(NodeId id, NestSequence& sequence, const NestSequence::NestCall& part,
                             const std::vector<bool>& is_constant, double flops) {
    SelectedKernels selected;
    if (!options_.choose && !options_.keeps_record) {
      add_kernels(select_kernels(sequence, part, is_constant, device_), flops, {}, selected);
      return selected;
    }
    const std::vector<DeviceCandidate> candidates =
        device_candidates(sequence, part, is_constant, device_);
    Decision decision;
    decision.node = id.index() < original_bound_ ? id : NodeId{};
    decision.name = node_label(graph_, id) + part_label(part.nest.name);
    decision.work = work_text(device_) + canonical_text({sequence, part, is_constant, false});
    decision.symbols = symbols_of(part.nest);
    decision.flops = flops;
    decision.has_estimates = false;
    for (const DeviceCandidate& each : candidates)
      decision.candidates.push_back({each.name, each.verdict});
    auto chosen = options_.choose ? options_.choose(decision) : std::nullopt;
    decision.selection = chosen ? std::move(*chosen) : Selection{{{0}}, "first by the facts"};
    bool has_any = false;
    for (const Version& version : decision.selection.versions) {
      // Without a guard for that symbol in the list, the first version serves for all values.
      if (!version.symbol.empty() && !guard_symbol(version) && has_any) continue;
      has_any = true;
      add_kernels(select_kernels(sequence, part, is_constant, candidates[version.candidate].target),
                  flops, version, selected);
    }
    selected.decision = std::move(decision);
    return selected;
  }

  // Copies before a contraction and epilogues after it are attributed to the contraction.
  static void add_kernels(std::vector<DeviceKernel> made, double flops, const Version& version,
                          SelectedKernels& selected) {
    const auto sum = std::ranges::find_if(
        made, [](const DeviceKernel& kernel) { return kernel.candidate != "loops"; });
    const std::size_t place = sum == made.end() ? 0 : static_cast<std::size_t>(sum - made.begin());
    for (std::size_t k = 0; k < made.size(); ++k)
      selected.kernels.push_back({std::move(made[k]), k == place ? flops : 0, version});
  }

  void add_task(NodeId id, const std::vector<ValueId>& results, const SelectedKernel& selected,
                const std::vector<std::uint32_t>& ids, const std::vector<Guards>& guards) {
    const DeviceKernel& kernel = selected.kernel;
    TaskList::Call call;
    for (const std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
    for (const nests::Packing& packing : kernel.packings) {
      std::uint32_t& argument = call.buffers[packing.buffer];
      argument = form_of(argument, packing);
    }
    if (kernel.library) {
      set_library_kernel(kernel, kernel_name(id, kernel.part.nest.name), call);
      for (const std::uint32_t buffer : call.buffers) note_use(buffer, false);
    } else {
      note_lookups(kernel.part.nest, call.buffers);
      set_kernel(kernel.part.nest, kernel_name(id, kernel.part.nest.name),
                 is_on_tensor_cores(kernel.candidate) ? kernel.candidate : "", call);
    }
    call.flops = selected.flops;
    call.bytes = bytes_of(call);
    TaskList::Task task = task_of(id, results);
    if (kernel.library) {  // the result is the last buffer
      task.reads.assign(call.buffers.begin(), call.buffers.end() - 1);
      task.writes = {call.buffers.back()};
    } else {
      note_uses(kernel.part.nest, call, task);
    }
    for (const Guards& guard : guards) {
      TaskList::Alternative alternative{kernel.candidate, guard, {call}};
      const Version& version = selected.version;
      if (const auto symbol = version.symbol.empty() ? std::nullopt : guard_symbol(version))
        alternative.when.push_back({static_cast<std::uint32_t>(*symbol), version.lo, version.hi});
      task.alternatives.push_back(std::move(alternative));
      ++shared_.step_count;
    }
    if (!kernel.library) {
      derive_uses(list_, task);
      // Kernel pointers are declared `__restrict__`: only a single result may share its operand's
      // memory.
      if (task.writes.size() > 1) task.may_share.clear();
    }
    list_.tasks.push_back(std::move(task));
  }

  // Adds a kernel and its launch geometry to a call; `by` names the tensor-core candidate, if any.
  void set_kernel(const LoopNest& nest, const std::string& name, const std::string& by,
                  TaskList::Call& call) {
    const GridBinding binding = bind_selected(nest, device_, by);
    set_numbers(call, nest);
    call.work = scope_.in_list(block_count(nest, binding));
    call.kernel = add_kernel(nest, name, by);
    TaskList::Kernel& kernel = list_.kernels[call.kernel];
    kernel.threads = binding.threads;
    kernel.scratch_bytes = scope_.in_list(scratch_per_block(nest, binding));
    if (binding.mma) kernel.shared_bytes = kMmaSharedBytes;
    if (binding.gemm) set_gemm(nest, *binding.gemm, kernel);
    if (binding.weight_gradient) set_weight_gradient(nest, *binding.weight_gradient, kernel);
    if (binding.wgmma_attention)
      set_attention(nest, *binding.attention, *binding.wgmma_attention, kernel);
    if (binding.split_attention)
      set_attention(nest, *binding.attention, *binding.split_attention, kernel);
    if (binding.convolution) set_convolution(nest, *binding.convolution, kernel);
  }

  static std::uint32_t place_of(const LoopNest& nest, const Scalar& load) {
    std::uint32_t place = 0;
    for (std::size_t k = 0; k < load->id; ++k)
      place += nest.buffers[k].storage != StorageClass::Scratch;
    return place;
  }

  // A tensor map over a contiguous tensor whose last axis is innermost.
  TaskList::TensorMap map_of(const LoopNest& nest, const Scalar& load, const Dims& view,
                             std::vector<std::uint64_t> box, std::vector<std::uint64_t> steps) {
    TaskList::TensorMap map{place_of(nest, load), scope_.in_list(view[0]), {}, {},
                            std::move(box),       std::move(steps)};
    std::uint64_t pitch = 1;
    for (std::size_t axis = view.size(); axis-- > 1;) {
      map.extents.push_back(whole(view[axis].constant()));
      map.pitches.push_back(pitch *= map.extents.back());
    }
    return map;
  }

  // Tensor maps of weight-gradient strips: rows of a strip, 32 channels per box.
  void set_weight_gradient(const LoopNest& nest, const WeightGradientTile& tile,
                           TaskList::Kernel& kernel) {
    kernel.shared_bytes = weight_gradient_shared_bytes(tile);
    kernel.cluster = 0;
    const GradientStrip strip = strip_of(tile);
    const std::uint64_t images = whole(strip.images), columns = whole(strip.image_columns()),
                        shifted = whole(strip.gradient_columns(tile.columns->extent.constant()));
    kernel.maps = {
        map_of(nest, tile.image, tile.image->view, {32, columns, 1, images}, {1, 1, 1, 1}),
        map_of(nest, tile.gradient, tile.gradient->view, {32, shifted, 1, images}, {1, 1, 1, 1})};
  }

  // Im2col tensor map of the pixels, 128 bytes of channels per box; a 2-D map of the weights.
  void set_convolution(const LoopNest& nest, const ConvolutionTile& tile,
                       TaskList::Kernel& kernel) {
    kernel.shared_bytes = convolution_shared_bytes(tile);
    kernel.cluster = tile.is_large ? 0 : static_cast<std::uint32_t>(tile.cluster());
    // Box size per block: with multicast, each block loads its slice of the shared pixels.
    const std::uint64_t side = whole(tile.tile_outputs), depth = whole(tile_depth(tile.gemm.dtype)),
                        pixels =
                            whole(tile.is_large ? kProductTile : kConvolutionTile / tile.siblings);
    const Dims matrix = {tile.outputs, tile.window_rows * tile.window_columns * tile.channels};
    kernel.maps = {map_of(nest, tile.image, tile.image->view, {depth, pixels, 1, 1},
                          {1, whole(tile.column_stride), whole(tile.row_stride), 1}),
                   map_of(nest, tile.weights, matrix, {depth, side}, {1, 1})};
    kernel.maps.front().before = {whole(tile.columns_before), whole(tile.rows_before)};
    kernel.maps.front().places = {whole(tile.columns), whole(tile.rows)};
  }

  static std::uint64_t whole(std::int64_t number) { return static_cast<std::uint64_t>(number); }

  void set_attention(const LoopNest& nest, const AttentionTile& tile,
                     const WgmmaAttention& attention, TaskList::Kernel& kernel) {
    kernel.shared_bytes = shared_bytes(tile, attention);
    kernel.cluster = 0;
    set_attention_maps(nest, tile, attention.keys_per_block, kernel);
  }
  void set_attention(const LoopNest& nest, const AttentionTile& tile,
                     const SplitAttention& attention, TaskList::Kernel& kernel) {
    kernel.shared_bytes = shared_bytes(tile, attention);
    kernel.cluster = static_cast<std::uint32_t>(attention.parts);
    set_attention_maps(nest, tile, kSplitKeys, kernel);
  }

  // Tensor maps of keys and values: 64 elements per box, one row of the map per key.
  void set_attention_maps(const LoopNest& nest, const AttentionTile& tile, std::int64_t keys,
                          TaskList::Kernel& kernel) {
    kernel.maps.clear();  // Calls share kernels.
    const auto add_map = [&](const Scalar& load, std::int64_t row) {
      kernel.maps.push_back({place_of(nest, load),
                             scope_.in_list(floor_div(product(load->view), Dim(row))),
                             {whole(row)},
                             {whole(row)},
                             {64, whole(keys)},
                             {1, 1}});
    };
    add_map(tile.k, tile.k_row.constant());
    add_map(tile.v, tile.v_row.constant());
  }

  // Tensor maps of both operands, and shared memory for the pipeline stages.
  void set_gemm(const LoopNest& nest, const GemmTile& tile, TaskList::Kernel& kernel) {
    const std::uint64_t side = whole(tile.tile_columns()), depth = whole(tile_depth(tile.dtype));
    kernel.shared_bytes = kProductSharedBytes;
    kernel.cluster = 0;
    kernel.maps = {{place_of(nest, tile.a),
                    scope_.in_list(tile.row_count),
                    {whole(tile.inner_count)},
                    {whole(tile.a_pitch)},
                    {depth, kProductTile},
                    {1, 1}}};
    const std::int64_t rows = tile.is_b_n_major ? tile.inner_count : tile.column_count;
    const std::int64_t columns = tile.is_b_n_major ? tile.column_count : tile.inner_count;
    kernel.maps.push_back({place_of(nest, tile.b),
                           Dim(rows),
                           {whole(columns)},
                           {whole(tile.b_pitch)},
                           {depth, tile.is_b_n_major ? depth : side},
                           {1, 1}});
  }

  void set_library_kernel(const DeviceKernel& made, const std::string& name, TaskList::Call& call) {
    call.extents = scope_.in_list(Dims(made.library_extents));
    const std::string description = to_string(*made.library);
    const auto [found, is_new] = shared_.kernels.try_emplace(description, list_.kernels.size());
    if (is_new) {
      TaskList::Kernel kernel;
      kernel.name = name;
      kernel.library = description;
      list_.kernels.push_back(std::move(kernel));
    }
    call.kernel = static_cast<std::uint32_t>(found->second);
  }

  // Derives the reads and writes of a device call from the storage of the nest's buffers.
  static void note_uses(const LoopNest& nest, const TaskList::Call& call, TaskList::Task& task) {
    std::size_t given = 0;
    for (const NestBuffer& buffer : nest.buffers) {
      if (buffer.storage == StorageClass::Scratch) continue;
      auto& uses = buffer.storage == StorageClass::Result ? task.writes : task.reads;
      uses.push_back(call.buffers[given++]);
    }
  }

  const CudaTarget& device_;
};

}  // namespace

std::unique_ptr<TaskWriter> device_tasks(const TaskContext& context, const CudaTarget& device) {
  return std::make_unique<DeviceTasks>(context, device);
}

}  // namespace tenon::codegen::cuda
