#include "codegen/select.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/source_writer.h"
#include "codegen/extent_of.h"
#include "codegen/general_kernels.h"
#include "codegen/guards.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "nests/schedule/pad.h"
#include "nests/schedule/specialise.h"
#include "nests/split_sums.h"
#include "nests/tile_and_fuse.h"
#include "nests/transposed_operand.h"
#include "nests/work_shares.h"
#include "ops/analysis.h"
#include "ops/signature.h"
#include "target/bf16.h"
#include "target/fusion_prices.h"

#include <algorithm>
#include <map>
#include <new>
#include <unordered_map>

namespace tenon::codegen {
namespace {

// Whether the node only gives its operand other extents.
bool is_view(const std::vector<Expr>& exprs) {
  if (exprs.size() != 1) return false;
  const Expr* expr = &exprs.front();
  while (expr->node().kind == ExprKind::Reshape) expr = &expr->node().args[0];
  return expr->node().kind == ExprKind::Operand;
}
std::size_t viewed_operand(const Expr& view) {
  const Expr* expr = &view;
  while (expr->node().kind == ExprKind::Reshape) expr = &expr->node().args[0];
  return expr->node().operand;
}

// The same text for the same order, whatever the numbers of its loops.
std::string form_text(const nests::Packing& packing) {
  std::string text =
      concat("packed, limit ", packing.limit, ": ",
             Dims(packing.extents.begin(), packing.extents.end()), " of ", packing.source_dims);
  for (const Scalar& coordinate : packing.coordinates) {
    const auto line = affine_of(coordinate);
    TENON_ASSERT(line, "what is packed is read evenly");
    text += concat("; ", line->start);
    for (std::size_t k = 0; k < packing.loops.size(); ++k) {
      const auto step = line->steps.find(packing.loops[k]);
      if (step != line->steps.end()) text += concat(" + ", step->second, " * ", k);
    }
  }
  return text;
}
std::string form_text(const nests::WinogradWeights& w) {
  return concat("winograd ", w.tile, ": ", w.outputs, " of ", w.channels, " from ", w.base, " by ",
                w.by_output, ", ", w.by_channel, ", ", w.by_row, ", ", w.by_column);
}

class Selector {
 public:
  Selector(const Graph& graph, const CompileOptions& options) : graph_(graph), options_(options) {
    TENON_ASSERT(options.target != nullptr, "code is made for a target");
  }

  TaskList run() {
    list_.name = graph_.name;
    add_inputs();
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      output_ports_.try_emplace(graph_.outputs()[k], static_cast<std::uint32_t>(k));
    }
    for (NodeId id : graph_.nodes_in_order()) add_node(id);
    refuse_if_unsupported();
    add_outputs();
    // A device's kernels are bound to their extents.
    if (!options_.device) share_general_kernels(list_);
    for (auto& [buffer, is_lookup] : is_looked_up_) list_.buffers[buffer].is_looked_up = is_lookup;
    return std::move(list_);
  }

 private:
  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims, Life life) {
    // Symbols that no input tells have no place in a list.
    for (const Dim& dim : dims) extent_of(dim, symbol_ids_);
    TaskList::Buffer buffer;
    buffer.name = name;
    buffer.dtype = dtype;
    buffer.dims = dims;
    buffer.life = life;
    list_.buffers.push_back(std::move(buffer));
    return static_cast<std::uint32_t>(list_.buffers.size() - 1);
  }

  void add_inputs() {
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      if (!input.type.is_tensor()) {
        throw Error("an input is not a tensor of known rank", ErrorKind::Unsupported)
            .at("input '", input.name, "'")
            .got(input.type);
      }
      const Dims& dims = input.type.tensor().dims;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        const auto name = dims[axis].symbol_name();
        if (!name || symbol_ids_.contains(*name)) continue;
        symbol_ids_[*name] = symbols_.size();
        const Range range = dims[axis].range();
        symbols_.push_back({*name, range.lo, range.hi, static_cast<std::uint32_t>(k),
                            static_cast<std::uint32_t>(axis)});
        const Program::Symbol& made = symbols_.back();
        list_.symbols.push_back({made.name, made.lo, made.hi, made.input, made.axis});
      }
    }
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      const std::uint32_t id =
          add_buffer(input.name, input.type.tensor().dtype, input.type.tensor().dims, Life::Input);
      list_.buffers[id].port = static_cast<std::uint32_t>(k);
      list_.inputs.push_back(id);
      buffers_[graph_.inputs()[k]] = id;
    }
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (const Constant* constant = graph_.constant_of(node.results.front())) {
      const Dims dims(constant->shape().begin(), constant->shape().end());
      if (!nests::is_compilable(constant->dtype())) {
        unsupported_.push_back(concat(graph_.location(id), ": element type ", constant->dtype()));
        return;
      }
      const std::uint32_t buffer = add_buffer(graph_.value(node.results.front()).name,
                                              constant->dtype(), dims, Life::Constant);
      list_.constants.emplace(buffer, *constant);
      buffers_[node.results.front()] = buffer;
      return;
    }
    try {
      for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
        for (ValueId value : *values) {
          if (value && !graph_.value(value).type.is_tensor()) {
            throw Error("its values are not tensors of known rank", ErrorKind::Unsupported);
          }
        }
      }
      add_kernels(id, prepared(id));
    } catch (Error& error) {
      if (error.kind() != ErrorKind::Unsupported) {
        if (!error.has_place()) error.at(graph_.location(id));
        throw;
      }
      unsupported_.push_back(concat(graph_.location(id), ": ", error.summary()));
      for (ValueId result : node.results) {
        if (result) buffers_.emplace(result, 0);  // so that the rest can be looked at
      }
    }
  }

  struct ChosenForNode;
  // What is known of nodes that compute the same of operands of the same kind: networks repeat
  // themselves.
  struct Prepared {
    std::vector<Expr> exprs;
    NestSequence sequence;
    Footprint footprint;
    const ChosenForNode* chosen = nullptr;
    std::vector<TaskList::Call> calls = {};  // without their buffers, in the order of `chosen`
  };

  Prepared& prepared(NodeId id) {
    std::string signature = signature_of(graph_, id);
    if (signature.empty()) signature = concat("node ", id.index());
    for (ValueId operand : graph_.node(id).operands) {
      const auto buffer = operand ? buffers_.find(operand) : buffers_.end();
      const bool is_constant =
          buffer != buffers_.end() && list_.buffers[buffer->second].life == Life::Constant;
      signature += !is_constant ? 'v' : has_small_weights(buffer->second) ? 's' : 'c';
    }
    if (const auto known = prepared_.find(signature); known != prepared_.end())
      return known->second;
    std::vector<Expr> exprs = nests::node_exprs(graph_, id);
    if (exprs.empty()) throw Error("no kernel computes this", ErrorKind::Unsupported);
    NestSequence sequence;
    // Nests are named for their node as they are used.
    if (!is_view(exprs)) sequence = nests::build_nests("", exprs);
    note_small_weights(graph_.node(id), sequence);
    Prepared made{std::move(exprs), std::move(sequence), footprint_of(graph_, id)};
    return prepared_.emplace(std::move(signature), std::move(made)).first->second;
  }

  void add_kernels(NodeId id, Prepared& prepared) {
    const std::vector<Expr>& exprs = prepared.exprs;
    const Node& node = graph_.node(id);
    std::vector<ValueId> results;
    for (ValueId result : node.results) {
      if (result) results.push_back(result);
    }
    if (is_view(exprs)) {
      buffers_[results.front()] = buffers_.at(node.operands.at(viewed_operand(exprs.front())));
      return;
    }
    const NestSequence& sequence = prepared.sequence;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      if (buffer.role != NestSequence::Role::Result) continue;
      const ValueId result = results.at(buffer.index);
      const std::uint32_t made =
          add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Life::Value);
      if (const auto output = output_ports_.find(result); output != output_ports_.end()) {
        list_.buffers[made].life = Life::Output;
        list_.buffers[made].port = output->second;
      }
      buffers_[result] = made;
    }
    // Each time the first that fits: kernels for values that come often, then those for all.
    std::vector<Guards> left = {{}};
    for (const DimBindings& values : options_.hot_values) {
      const auto numbers = symbol_numbers(values);
      if (!numbers || !depends_on(sequence, values)) continue;
      DividedGuards divided = divide(left, *numbers, symbols_);
      if (!divided.inside.empty()) {
        Prepared special{exprs, specialised(sequence, values), prepared.footprint};
        add_tasks(id, results, special, divided.inside);
      }
      left = std::move(divided.outside);
    }
    if (!left.empty()) add_tasks(id, results, prepared, left);
  }

  // Constants of bytes whose products add up in 16 bits; kernels may count on it.
  void note_small_weights(const Node& node, NestSequence& sequence) {
    for (NestSequence::Part& part : sequence.parts) {
      std::size_t given = 0;
      for (NestBuffer& buffer : part.nest.buffers) {
        if (buffer.storage == Storage::Scratch) continue;
        const NestSequence::Buffer& from = sequence.buffers[part.buffers[given++]];
        if (from.role != NestSequence::Role::Operand) continue;
        if (has_small_weights(buffers_.at(node.operands.at(from.index))))
          buffer.largest = kSmallWeight;
      }
    }
  }
  bool has_small_weights(std::uint32_t id) {
    const auto constant = list_.constants.find(id);
    if (constant == list_.constants.end() || constant->second.dtype() != DType::I8) return false;
    const auto [known, is_new] = has_small_weights_.try_emplace(id, false);
    if (!is_new) return known->second;
    int largest = 0;
    const Tensor elements = constant->second.materialise();
    for (const std::int8_t element : elements.as<std::int8_t>())
      largest = std::max(largest, std::abs(int{element}));
    return known->second = largest <= kSmallWeight;
  }

  // The values by number of their symbol; nothing where one cannot be, or is none of the program's.
  std::optional<std::map<std::size_t, std::int64_t>> symbol_numbers(
      const DimBindings& values) const {
    std::map<std::size_t, std::int64_t> numbers;
    for (const auto& [name, value] : values) {
      const auto found = symbol_ids_.find(name);
      if (found == symbol_ids_.end()) return std::nullopt;
      const Program::Symbol& symbol = symbols_[found->second];
      if (value.constant() < symbol.lo || value.constant() > symbol.hi) return std::nullopt;
      numbers.emplace(found->second, value.constant());
    }
    return numbers;
  }

  // Of a node's nests: its operands and results, forms of its constants, and what lies between the
  // nests.
  std::vector<std::uint32_t> buffer_ids(const Node& node, const std::vector<ValueId>& results,
                                        const NestSequence& sequence,
                                        const std::vector<nests::WinogradWeights>& derived) {
    std::vector<std::uint32_t> ids;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      switch (buffer.role) {
        case NestSequence::Role::Operand:
          ids.push_back(buffers_.at(node.operands.at(buffer.index)));
          break;
        case NestSequence::Role::Result:
          ids.push_back(buffers_.at(results.at(buffer.index)));
          break;
        case NestSequence::Role::Derived: {
          const nests::WinogradWeights& weights = derived.at(buffer.index);
          ids.push_back(form_of(ids[weights.source], weights, DType::F32, weights.dims()));
          break;
        }
        case NestSequence::Role::Temporary:
          // Those that a nest keeps to itself are never asked for.
          ids.push_back(add_buffer("", buffer.dtype, buffer.dims, Life::Value));
          break;
      }
    }
    return ids;
  }

  // A kernel of a device with the work of its call.
  void set_device_kernel(const LoopNest& nest, const std::string& name, TaskList::Call& call) {
    const cuda::Binding binding = cuda::bind(nest);
    set_numbers(call, nest);
    call.work = cuda::block_count(nest, binding);
    call.kernel = add_kernel(nest, name);
    list_.kernels[call.kernel].threads = binding.threads;
    list_.kernels[call.kernel].scratch_bytes = cuda::scratch_per_block(nest, binding);
  }

  void set_library_kernel(const cuda::DeviceKernel& made, TaskList::Call& call) {
    call.extents = made.library_extents;
    for (const Dim& dim : call.extents) extent_of(dim, symbol_ids_);
    const std::string description = to_string(*made.library);
    const auto [found, is_new] = kernels_.try_emplace(description, list_.kernels.size());
    if (is_new) {
      TaskList::Kernel kernel;
      kernel.name = made.part.nest.name;
      kernel.library = description;
      list_.kernels.push_back(std::move(kernel));
    }
    call.kernel = static_cast<std::uint32_t>(found->second);
  }

  void add_device_tasks(NodeId id, const std::vector<ValueId>& results, NestSequence sequence,
                        const std::vector<Guards>& guards, const std::vector<bool>& is_constant) {
    const Node& node = graph_.node(id);
    const Footprint footprint = footprint_of(graph_, id);
    std::vector<cuda::DeviceKernel> kernels;
    cuda::arrange(sequence, *options_.device);
    const std::vector<NestSequence::Part> parts = sequence.parts;
    std::vector<const LoopNest*> nests;
    for (const NestSequence::Part& part : parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    std::vector<double> flops;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const bool is_known = footprint.flops.is_constant();
      double left = is_known ? shares[k] * static_cast<double>(footprint.flops.constant()) : 0;
      for (cuda::DeviceKernel& kernel :
           cuda::select_kernels(sequence, parts[k], is_constant, *options_.device)) {
        kernels.push_back(std::move(kernel));
        flops.push_back(left);
        left = 0;  // what follows a sum counts with it
      }
    }
    const std::vector<std::uint32_t> ids = buffer_ids(node, results, sequence, {});
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const cuda::DeviceKernel& kernel = kernels[k];
      TaskList::Call call;
      for (const std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
      for (const nests::Packing& packing : kernel.packings) {
        std::uint32_t& argument = call.buffers[packing.buffer];
        const Dims dims(packing.extents.begin(), packing.extents.end());
        argument = form_of(argument, packing, list_.buffers[argument].dtype, dims);
      }
      if (kernel.library) {
        set_library_kernel(kernel, call);
        for (const std::uint32_t buffer : call.buffers) note_use(buffer, false);
      } else {
        note_lookups(kernel.part.nest, call.buffers);
        set_device_kernel(kernel.part.nest, node_name(id) + kernel.part.nest.name, call);
      }
      call.flops = flops[k];
      call.bytes = bytes_of(call);
      TaskList::Task task;
      task.name = graph_.value(results.front()).name;
      if (kernel.library) {  // its result comes last
        task.reads.assign(call.buffers.begin(), call.buffers.end() - 1);
        task.writes = {call.buffers.back()};
      } else {
        note_uses(kernel.part.nest, call, task);
      }
      for (const Guards& guard : guards) {
        TaskList::Way way{kernel.candidate, {}, {call}};
        for (const Program::Guard& each : guard) {
          way.when.push_back({each.symbol, each.lo, each.hi});
        }
        task.ways.push_back(std::move(way));
        ++step_count_;
      }
      list_.tasks.push_back(std::move(task));
    }
  }

  // What a call on a device reads and writes, as the nest says that it computes.
  static void note_uses(const LoopNest& nest, const TaskList::Call& call, TaskList::Task& task) {
    std::size_t given = 0;
    for (const NestBuffer& buffer : nest.buffers) {
      if (buffer.storage == Storage::Scratch) continue;
      auto& uses = buffer.storage == Storage::Result ? task.writes : task.reads;
      uses.push_back(call.buffers[given++]);
    }
  }

  // What computes a node, for the values of symbols that one of the guards asks for.
  void add_tasks(NodeId id, const std::vector<ValueId>& results, Prepared& prepared,
                 const std::vector<Guards>& guards) {
    const NestSequence& nests_of_node = prepared.sequence;
    const Node& node = graph_.node(id);
    std::vector<bool> is_constant;
    for (const NestSequence::Buffer& buffer : nests_of_node.buffers) {
      is_constant.push_back(buffer.role == NestSequence::Role::Operand &&
                            list_.buffers[buffers_.at(node.operands.at(buffer.index))].life ==
                                Life::Constant);
    }
    if (options_.device) {
      add_device_tasks(id, results, nests_of_node, guards, is_constant);
      return;
    }
    if (!prepared.chosen) choose_for(id, is_constant, prepared);
    const ChosenForNode& all = *prepared.chosen;
    const NestSequence& sequence = all.sequence;
    const std::vector<nests::WinogradWeights>& derived = all.derived;
    const std::vector<ChosenKernels>& chosen = all.kernels;
    const std::vector<std::uint32_t> ids = buffer_ids(node, results, sequence, derived);
    if (prepared.calls.empty()) prepare_calls(id, ids, prepared);
    std::size_t count = 0;
    for (const ChosenKernels& kernels : chosen) {
      Decision decision = kernels.decision;
      decision.node = id;
      decision.name = node_name(id) + kernels.suffix;
      TaskList::Task task;
      task.name = graph_.value(results.front()).name;
      decision.first_step = step_count_;
      for (const auto& [version, made] : kernels.versions) {
        TaskList::Way way;
        way.candidate = decision.candidates[version.candidate].name;
        for (const MadeKernel& kernel : made) {
          TaskList::Call call = prepared.calls[count++];
          set_buffers(call, kernel, ids);
          note_lookups(call);
          way.calls.push_back(std::move(call));
        }
        for (const Guards& guard : guards) {
          way.when.clear();
          for (const Program::Guard& each : guard)
            way.when.push_back({each.symbol, each.lo, each.hi});
          if (!version.symbol.empty()) {
            way.when.push_back({static_cast<std::uint32_t>(symbol_ids_.at(version.symbol)),
                                version.lo, version.hi});
          }
          task.ways.push_back(way);
          step_count_ += way.calls.size();
        }
      }
      decision.step_count = step_count_ - decision.first_step;
      derive_uses(list_, task);
      list_.tasks.push_back(std::move(task));
      if (options_.decisions != nullptr) options_.decisions->push_back(std::move(decision));
    }
  }

  void set_buffers(TaskList::Call& call, const MadeKernel& kernel,
                   const std::vector<std::uint32_t>& ids) {
    for (std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
    use_packings(kernel, call.buffers);
  }

  // What all calls for such a node have in common; `ids` are the buffers of this one.
  void prepare_calls(NodeId id, const std::vector<std::uint32_t>& ids, Prepared& prepared) {
    std::vector<const MadeKernel*> all;
    std::vector<const LoopNest*> nests;
    for (const ChosenKernels& kernels : prepared.chosen->kernels) {
      for (const auto& [version, made] : kernels.versions) {
        for (const MadeKernel& kernel : made) {
          all.push_back(&kernel);
          nests.push_back(&kernel.part.nest);
        }
      }
    }
    const std::vector<double> shares = work_shares(nests);
    const Footprint& footprint = prepared.footprint;
    const Dim all_bytes = footprint.bytes_read + footprint.bytes_written;
    const double flops =
        footprint.flops.is_constant() ? static_cast<double>(footprint.flops.constant()) : 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      TaskList::Call call;
      set_buffers(call, *all[k], ids);
      set_numbers(call, *nests[k]);
      call.kernel = add_kernel(*nests[k], node_name(id) + nests[k]->name);
      call.flops = shares[k] * flops;
      call.bytes = nests.size() > 1 || !all_bytes.is_constant()
                       ? bytes_of(call)
                       : static_cast<double>(all_bytes.constant());
      call.buffers.clear();
      prepared.calls.push_back(std::move(call));
    }
  }

  // What a call's buffers hold; 0 where symbols decide.
  double bytes_of(const TaskList::Call& call) const {
    double bytes = 0;
    for (const std::uint32_t id : call.buffers) {
      const Dim count = product(list_.buffers[id].dims);
      if (!count.is_constant()) return 0;
      bytes += static_cast<double>(info(list_.buffers[id].dtype).storage_bytes) *
               static_cast<double>(count.constant());
    }
    return bytes;
  }

  // The buffer that holds a constant in another form: each form of each is there once.
  template <class How>
  std::uint32_t form_of(std::uint32_t source, const How& how, DType dtype, const Dims& dims) {
    TENON_ASSERT(list_.constants.contains(source), "made from the constant itself");
    const std::string text = form_text(how);
    const auto [known, is_new] =
        forms_.try_emplace({source, text}, static_cast<std::uint32_t>(list_.buffers.size()));
    if (!is_new) return known->second;
    const std::uint32_t made = add_buffer(list_.buffers[source].name, dtype, dims, Life::Constant);
    list_.buffers[made].form = TaskList::Form{source, text, how};
    return made;
  }

  bool is_winograd(const NestSequence& sequence, const NestSequence::Part& part,
                   const std::vector<bool>& is_constant) const {
    const std::vector<Candidate> candidates =
        options_.target->candidates({sequence, part, is_constant, options_.allow_winograd});
    return candidates[cheapest(candidates)].is_winograd;
  }

  // Puts nests that hand each other their results together. What Winograd's algorithm computes
  // stays apart, and operands that are read past their edges get room around them before.
  void chain(NestSequence& sequence, const std::vector<bool>& is_constant) const {
    if (sequence.parts.size() < 2) return;
    NestSequence chained = sequence;
    chained.parts.clear();
    for (const NestSequence::Part& part : sequence.parts) {
      if (is_winograd(sequence, part, is_constant)) {
        chained.parts.push_back(part);
        chained.parts.back().is_scheduled = true;  // not to be touched
        continue;
      }
      for (NestSequence::Part& made : split_padding(chained, part, is_constant))
        chained.parts.push_back(std::move(made));
    }
    const std::size_t count = chained.parts.size();
    tile_and_fuse(chained, fusion_prices(options_.target->facts()));
    if (chained.parts.size() == count) return;
    for (NestSequence::Part& part : chained.parts) part.is_scheduled = false;
    sequence = std::move(chained);
  }

  // What the run is to tell the kernel: extents that are no numbers, and how much there is to do.
  void set_numbers(TaskList::Call& call, const LoopNest& nest) const {
    call.extents = nest.extents;
    call.work = work_items(nest);
    // Symbols that no input tells cannot be computed.
    for (const Dim& dim : call.extents) extent_of(dim, symbol_ids_);
  }

  // A node goes by its first result.
  const std::string& node_name(NodeId id) const {
    const std::vector<ValueId>& results = graph_.node(id).results;
    return graph_
        .value(*std::find_if(results.begin(), results.end(),
                             [](ValueId result) { return bool(result); }))
        .name;
  }

  struct ChosenKernels {
    std::string suffix;  // of its name, behind the node's
    Decision decision;
    std::vector<std::pair<Version, std::vector<MadeKernel>>> versions;
  };
  struct ChosenForNode {
    NestSequence sequence;
    std::vector<nests::WinogradWeights> derived;
    std::vector<ChosenKernels> kernels;
  };
  // Networks repeat themselves: what was chosen for the same nests of an earlier node is taken
  // again.
  void choose_for(NodeId id, const std::vector<bool>& is_constant, Prepared& prepared) {
    const NestSequence& sequence = prepared.sequence;
    std::string text;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      text += concat(static_cast<int>(buffer.role), " ", buffer.index, " ", buffer.dtype,
                     buffer.dims, "\n");
    }
    for (const bool is : is_constant) text += is ? 'c' : 'v';
    for (const NestSequence::Part& part : sequence.parts) {
      for (const std::size_t buffer : part.buffers) text += concat(" ", buffer);
      const std::string nest = to_string(part.nest);
      text.append(nest, nest.find('('));  // all but its name
    }
    if (const auto known = chosen_.find(text); known != chosen_.end()) {
      prepared.chosen = &known->second;
      return;
    }
    ChosenForNode made{sequence, {}, {}};
    split_sums(made.sequence);
    // What Winograd's algorithm computes reads weights as they lie.
    for (NestSequence::Part& part : made.sequence.parts) {
      part.is_scheduled =
          nests::find_contraction(part.nest) && is_winograd(made.sequence, part, is_constant);
    }
    const TargetFacts& facts = options_.target->facts();
    transpose_operands(made.sequence, is_constant, facts.line_bytes / 4,
                       !bf16_instructions(facts).empty());
    for (NestSequence::Part& part : made.sequence.parts) part.is_scheduled = false;
    chain(made.sequence, is_constant);
    made.kernels = choose_kernels(id, made.sequence, is_constant, made.derived, prepared.footprint);
    prepared.chosen = &chosen_.emplace(std::move(text), std::move(made)).first->second;
  }

  std::vector<ChosenKernels> choose_kernels(NodeId id, NestSequence& sequence,
                                            const std::vector<bool>& is_constant,
                                            std::vector<nests::WinogradWeights>& derived,
                                            const Footprint& footprint) {
    std::vector<const LoopNest*> nests;
    for (const NestSequence::Part& part : sequence.parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    std::vector<ChosenKernels> chosen;
    for (const NestSequence::Part& part : sequence.parts) {
      const KernelWork work{sequence, part, is_constant, options_.allow_winograd};
      const std::vector<Candidate> candidates = options_.target->candidates(work);
      ChosenKernels& made = chosen.emplace_back();
      Decision& decision = made.decision;
      decision.node = id;
      made.suffix = part.nest.name;
      decision.name = node_name(id) + made.suffix;
      for (const Candidate& candidate : candidates)
        decision.candidates.push_back({candidate.name, candidate.verdict});
      if (options_.choose || options_.decisions != nullptr) {
        decision.work = canonical_text(work);
        decision.symbols = symbols_of(part.nest);
        if (footprint.flops.is_constant()) {
          decision.flops =
              shares[chosen.size() - 1] * static_cast<double>(footprint.flops.constant());
        }
      }
      auto selected = options_.choose ? options_.choose(decision) : std::nullopt;
      decision.selection = selected ? std::move(*selected)
                                    : Selection{{{cheapest(candidates)}}, "least estimated cost"};
      for (const Version& version : decision.selection.versions) {
        // Versions by the same candidate share what it makes.
        const auto same = std::find_if(
            made.versions.begin(), made.versions.end(),
            [&](const auto& other) { return other.first.candidate == version.candidate; });
        std::vector<MadeKernel> nests_made =
            same != made.versions.end() ? same->second
                                        : candidates[version.candidate].make(sequence, derived);
        made.versions.emplace_back(version, std::move(nests_made));
      }
    }
    return chosen;
  }

  // What the nest wants packed is another constant in `arguments`.
  void use_packings(const MadeKernel& kernel, std::vector<std::uint32_t>& arguments) {
    std::vector<std::size_t> argument_of;
    std::size_t given = 0;
    for (const NestBuffer& buffer : kernel.part.nest.buffers) {
      argument_of.push_back(given);
      given += buffer.storage != Storage::Scratch;
    }
    for (const nests::Packing& packing : kernel.packings) {
      std::uint32_t& argument = arguments[argument_of[packing.buffer]];
      const auto [known, is_new] = packed_.try_emplace({&packing, argument}, 0);
      if (is_new) {
        const Dims dims(packing.extents.begin(), packing.extents.end());
        known->second = form_of(argument, packing, list_.buffers[argument].dtype, dims);
      }
      argument = known->second;
    }
  }

  // A kernel's buffers are looked up or not, whoever calls it.
  void note_lookups(const TaskList::Call& call) {
    const auto [known, is_new] = lookups_.try_emplace(call.kernel);
    if (is_new) {
      const LoopNest& nest = list_.kernels[call.kernel].nest;
      const std::vector<bool> is_looked_up = looked_up(nest);
      for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
        if (nest.buffers[k].storage != Storage::Scratch) known->second.push_back(is_looked_up[k]);
      }
    }
    for (std::size_t k = 0; k < call.buffers.size(); ++k)
      note_use(call.buffers[k], known->second[k]);
  }

  void note_lookups(const LoopNest& nest, const std::vector<std::uint32_t>& arguments) {
    const std::vector<bool> is_looked_up = looked_up(nest);
    std::size_t given = 0;
    for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
      if (nest.buffers[k].storage == Storage::Scratch) continue;
      note_use(arguments[given++], is_looked_up[k]);
    }
  }

  // A kernel reads the buffer, at places that data decides or at all of them.
  void note_use(std::uint32_t buffer, bool is_lookup) {
    bool& all = is_looked_up_.try_emplace(buffer, true).first->second;
    all = all && is_lookup && list_.buffers[buffer].life == Life::Constant;
  }

  // Nests that read the same but for their names are one kernel.
  std::uint32_t add_kernel(LoopNest nest, const std::string& name) {
    nest.name.clear();
    const auto [found, is_new] = kernels_.try_emplace(to_string(nest), list_.kernels.size());
    if (is_new) {
      nest.name = concat("k", list_.kernels.size());
      const Dim scratch = scratch_bytes(nest);
      list_.kernels.push_back({name, std::move(nest), scratch});
    }
    return static_cast<std::uint32_t>(found->second);
  }

  void add_outputs() {
    std::vector<bool> is_taken(list_.buffers.size(), false);
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const ValueId value = graph_.outputs()[k];
      const std::uint32_t made = buffers_.at(value);
      const TaskList::Buffer& buffer = list_.buffers[made];
      if (buffer.life == Life::Output && buffer.port == k && made < is_taken.size() &&
          !is_taken[made]) {
        is_taken[made] = true;
        list_.outputs.push_back(made);
        continue;
      }
      // An input, a constant, a view or the same value again: the caller gets a copy.
      const TensorType& type = graph_.value(value).type.tensor();
      const std::uint32_t copy =
          add_buffer(graph_.value(value).name, type.dtype, type.dims, Life::Output);
      list_.buffers[copy].port = static_cast<std::uint32_t>(k);
      list_.outputs.push_back(copy);
      NestSequence sequence =
          nests::build_nests("copy", {operand_expr(0, {type.dtype, {product(type.dims)}, {}})});
      if (sequence.parts.empty()) continue;  // no elements
      LoopNest& nest = sequence.parts.front().nest;
      TaskList::Call call;
      for (std::size_t id : sequence.parts.front().buffers) {
        const bool is_operand = sequence.buffers[id].role == NestSequence::Role::Operand;
        call.buffers.push_back(is_operand ? made : copy);
      }
      note_lookups(nest, call.buffers);
      TaskList::Task task;
      task.kind = TaskList::Task::Kind::Copy;
      task.name = graph_.value(value).name;
      if (options_.device) {
        set_device_kernel(nest, "copy", call);
        note_uses(nest, call, task);
        task.ways.push_back({"loops", {}, {std::move(call)}});
      } else {
        options_.target->schedule(nest);
        set_numbers(call, nest);
        call.kernel = add_kernel(std::move(nest), "copy");
        task.ways.push_back({"", {}, {std::move(call)}});
        derive_uses(list_, task);
      }
      list_.tasks.push_back(std::move(task));
      ++step_count_;
    }
  }

  void refuse_if_unsupported() const {
    if (unsupported_.empty()) return;
    const std::size_t shown = std::min<std::size_t>(unsupported_.size(), 20);
    std::string list = join({unsupported_.data(), shown}, "\n            ");
    if (shown < unsupported_.size())
      list += concat("\n            and ", unsupported_.size() - shown, " more");
    throw Error("the model has nodes that are not compiled", ErrorKind::Unsupported).got(list);
  }

  const Graph& graph_;
  const CompileOptions& options_;
  TaskList list_;
  std::vector<Program::Symbol> symbols_;
  std::map<std::string, std::size_t> symbol_ids_;
  std::unordered_map<ValueId, std::uint32_t> buffers_;
  std::unordered_map<ValueId, std::uint32_t> output_ports_;  // the first of each
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> forms_;
  std::map<std::uint32_t, bool> is_looked_up_;  // by buffer: by every kernel that reads it
  std::unordered_map<std::string, std::size_t> kernels_;
  std::unordered_map<std::string, ChosenForNode> chosen_;
  std::unordered_map<std::string, Prepared>
      prepared_;  // by signature and which operands are constant
  std::map<std::pair<const nests::Packing*, std::uint32_t>, std::uint32_t>
      packed_;                                                    // of a constant
  std::unordered_map<std::uint32_t, std::vector<bool>> lookups_;  // by kernel, for its arguments
  static constexpr std::int64_t kSmallWeight = 64;   // two products with 255 stay below 2^15
  std::map<std::uint32_t, bool> has_small_weights_;  // by buffer, of constants of bytes
  std::size_t step_count_ = 0;
  std::vector<std::string> unsupported_;
};

}  // namespace

TaskList select(const Graph& graph, const CompileOptions& options) {
  return Selector(graph, options).run();
}

}  // namespace tenon::codegen
