#include "codegen/select.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/control.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/source_writer.h"
#include "codegen/general_kernels.h"
#include "codegen/graph_scope.h"
#include "codegen/guards.h"
#include "ir/constraint.h"
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
#include "ops/fused_groups.h"
#include "ops/signature.h"
#include "target/bf16.h"
#include "target/fusion_prices.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>
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

// What graphs, the model's and those of bodies, share in one list.
struct SharedKernels {
  TaskList list;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> forms;
  std::map<std::uint32_t, bool> is_looked_up;  // by buffer: by every kernel that reads it
  std::unordered_map<std::string, std::size_t> kernels;
  std::map<std::pair<const std::byte*, std::string>, std::uint32_t>
      constants;                                     // by memory and type
  std::unordered_map<std::string, bool> has_kernel;  // by signature: networks repeat themselves
  std::size_t step_count = 0;

  bool may_be_kernel(const Graph& graph, NodeId id) {
    std::string signature = signature_of(graph, id);
    if (signature.empty()) return kernel_refusal(graph, id).empty();
    const auto [known, is_new] = has_kernel.try_emplace(std::move(signature), false);
    if (is_new) known->second = kernel_refusal(graph, id).empty();
    return known->second;
  }
};

// A copy with the nodes of groups in their place, of those that are no kernel; nothing if there are
// none.
std::optional<Graph> without_groups_of_data(const Graph& graph, SharedKernels& shared) {
  TaskList nothing;
  GraphScope scope(graph, nothing);
  const auto tell = [&](ValueId value) {
    if (!value || !graph.value(value).type.is_tensor()) return;
    for (const Dim& dim : graph.value(value).type.tensor().dims) {
      if (const auto symbol = dim.symbol_name()) scope.alias(*symbol, Dim(0));
    }
  };
  for (ValueId input : graph.inputs()) tell(input);
  std::vector<NodeId> groups;
  for (NodeId id : graph.nodes_in_order()) {
    if (is_fused_group(graph, id) && (!scope.knows_extents(id) || !shared.may_be_kernel(graph, id)))
      groups.push_back(id);
    for (ValueId result : graph.node(id).results) tell(result);
  }
  if (groups.empty()) return std::nullopt;
  Graph copy = graph;
  for (const NodeId group : groups) inline_group(copy, group);
  return copy;
}

class Selector {
 public:
  // The model's graph; `original_bound`: its ids that callers know are below.
  Selector(const Graph& graph, const CompileOptions& options, SharedKernels& shared,
           std::size_t original_bound)
      : graph_(graph),
        options_(options),
        shared_(shared),
        list_(shared.list),
        scope_(graph, shared.list),
        buffers_(scope_.buffers),
        original_bound_(original_bound) {
    TENON_ASSERT(options.target != nullptr, "code is made for a target");
  }

  void run() {
    list_.name = graph_.name;
    add_inputs();
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      scope_.ports.try_emplace(graph_.outputs()[k], static_cast<std::uint32_t>(k));
    }
    for (NodeId id : graph_.nodes_in_order()) add_node(id);
    add_outputs();
    add_checks(0, kNoBuffer);
    // A device's kernels are bound to their extents.
    if (!options_.device) share_general_kernels(list_);
    for (auto& [buffer, is_lookup] : shared_.is_looked_up)
      list_.buffers[buffer].is_looked_up = is_lookup;
  }

  // The same for a body.
  AddedBody run_body(GraphScope& around, const BodyRequest& request) {
    is_body_ = true;
    AddedBody added;
    const auto begin = static_cast<std::uint32_t>(list_.tasks.size());
    for (std::size_t k = 0; k < request.inputs.size(); ++k)
      added.inputs.push_back(bind_input(around, request.inputs[k], k));
    for (std::size_t k = 0; k < request.outputs.size(); ++k) {
      const BodyRequest::Output& output = request.outputs[k];
      Target target{output.into, output.window};
      if (output.like) {
        const TaskList::Buffer& input = list_.buffers[added.inputs[*output.like]];
        if (!input.opaque) target.window = {input.dtype, input.dims};
      }
      if (target.buffer || target.window)
        targets_.try_emplace(graph_.outputs()[k], std::move(target));
    }
    for (NodeId id : graph_.nodes_in_order()) add_node(id);
    std::set<std::uint32_t> taken;
    for (std::size_t k = 0; k < request.outputs.size(); ++k) {
      const ValueId output = graph_.outputs()[k];
      added.outputs.push_back(scope_.whole(output));
      const auto target = targets_.find(output);
      const bool is_direct = target != targets_.end() && target->second.is_taken &&
                             target->second.buffer == added.outputs.back() &&
                             taken.insert(added.outputs.back()).second;
      added.is_direct.push_back(is_direct);
    }
    add_checks(begin, static_cast<std::uint32_t>(list_.tasks.size()));
    return added;
  }

 private:
  // Where a value of a body is wanted.
  struct Target {
    std::optional<std::uint32_t> buffer;                // there
    std::optional<BodyRequest::Output::Window> window;  // or in a slot of its own
    bool is_taken = false;
  };

  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims, Life life) {
    return scope_.add_buffer(name, dtype, dims, life);
  }

  void add_inputs() {
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      TaskList::Buffer buffer;
      buffer.name = input.name;
      buffer.life = Life::Input;
      buffer.port = static_cast<std::uint32_t>(k);
      if (input.type.is_tensor()) {
        buffer.dtype = input.type.tensor().dtype;
      } else {
        buffer.opaque = input.type;
      }
      const auto id = static_cast<std::uint32_t>(list_.buffers.size());
      list_.buffers.push_back(std::move(buffer));
      scope_.tell(input.type, id);
      list_.inputs.push_back(id);
      buffers_[graph_.inputs()[k]] = id;
    }
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      if (input.type.is_tensor())
        list_.buffers[list_.inputs[k]].dims = scope_.in_list(input.type.tensor().dims);
    }
  }

  // Extents that are known around the body are known in it, by the body's names for them.
  void alias_symbols(GraphScope& around, const Type& declared, const Type& given) {
    if (!declared.is_tensor() || !given.is_tensor() ||
        declared.tensor().rank() != given.tensor().rank())
      return;
    for (std::size_t axis = 0; axis < declared.tensor().rank(); ++axis) {
      const auto symbol = declared.tensor().dims[axis].symbol_name();
      const Dim& dim = given.tensor().dims[axis];
      if (symbol && !scope_.has(*symbol) && around.is_told(dim))
        scope_.alias(*symbol, around.in_list(dim));
    }
  }

  std::uint32_t bind_input(GraphScope& around, const BodyRequest::Input& input, std::size_t k) {
    const ValueId value = graph_.inputs()[k];
    const Type& declared = graph_.value(value).type;
    alias_symbols(around, declared, input.type);
    std::uint32_t buffer = 0;
    if (input.buffer) {
      buffer = declared.is_tensor() ? *input.buffer : *input.whole;
      buffers_[value] = buffer;
      scope_.wholes[value] = *input.whole;
      // What is around does not know that it is a tensor, or of which extents: here it is held to
      // that.
      if (list_.buffers[buffer].opaque && declared.is_tensor()) {
        const std::uint32_t known = scope_.add_value(value, true);
        scope_.wholes[value] = known;
        add_host_task(scope_, "identity", buffer, known);
        ++shared_.step_count;
        buffer = known;
      }
    } else {
      buffer = scope_.add_value(value, true);
    }
    scope_.tell(declared, buffer);
    return buffer;
  }

  void add_checks(std::uint32_t begin, std::uint32_t end) {
    for (const Constraint& constraint : constraints_of(graph_)) {
      if (!scope_.is_told(constraint.a) || !scope_.is_told(constraint.b)) continue;
      const Dim a = scope_.in_list(constraint.a), b = scope_.in_list(constraint.b);
      if (truth_of(constraint.kind, a, b) == Truth::Always) continue;
      list_.checks.push_back(
          {{constraint.kind, a, b, constraint.op, constraint.where}, begin, end});
    }
  }

  void add_constant(NodeId id, const Constant& constant) {
    const ValueId result = graph_.node(id).results.front();
    const bool is_dense = constant.kind() == Constant::Kind::Dense && constant.size() > 0;
    const std::byte* memory = is_dense ? constant.stored().bytes().data() : nullptr;
    const std::pair key{memory, to_string(constant.type())};
    // Bodies have what they capture for their own.
    if (const auto known = shared_.constants.find(key);
        is_body_ && is_dense && known != shared_.constants.end()) {
      buffers_[result] = known->second;
      return;
    }
    const Dims dims(constant.shape().begin(), constant.shape().end());
    const std::uint32_t buffer =
        add_buffer(graph_.value(result).name, constant.dtype(), dims, Life::Constant);
    list_.constants.emplace(buffer, constant);
    buffers_[result] = buffer;
    if (is_dense) shared_.constants.emplace(key, buffer);
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    const Constant* constant = graph_.constant_of(node.results.front());
    if (constant != nullptr && nests::is_compilable(constant->dtype()))
      return add_constant(id, *constant);
    if (!node.bodies.empty() && !is_fused_group(graph_, id)) {
      ++shared_.step_count;
      add_control_tasks(
          scope_, id, !options_.device, [&](GraphScope& around, const BodyRequest& request) {
            const std::optional<Graph> graph = without_groups_of_data(*request.graph, shared_);
            return Selector(graph ? *graph : *request.graph, options_, shared_, 0)
                .run_body(around, request);
          });
      return;
    }
    if (constant != nullptr || !scope_.knows_extents(id) || !shared_.may_be_kernel(graph_, id)) {
      ++shared_.step_count;
      return add_host_task(scope_, id);
    }
    try {
      add_kernels(id, prepared(id));
    } catch (Error& error) {
      if (!error.has_place()) error.at(graph_.location(id));
      throw;
    }
  }

  using MadeVersion = std::pair<Version, std::vector<MadeKernel>>;
  struct ChosenKernels {
    std::string suffix;  // of its name, behind the node's
    Decision decision;
    std::vector<MadeVersion> versions;
  };
  struct ChosenForNode {
    NestSequence sequence;
    std::vector<nests::WinogradWeights> derived;
    std::vector<ChosenKernels> kernels;
  };
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
    TENON_ASSERT(!exprs.empty(), "asked of what a kernel computes");
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
      buffers_[result] = add_result(result, buffer);
    }
    // Each time the first that fits: kernels for values that come often, then those for all.
    std::vector<Guards> left = {{}};
    for (const DimBindings& values : options_.specialised_shapes) {
      if (is_body_) break;
      const auto numbers = symbol_numbers(values);
      if (!numbers || !depends_on(sequence, values)) continue;
      DividedGuards divided = divide(left, *numbers, program_symbols());
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

  std::uint32_t add_result(ValueId result, const NestSequence::Buffer& buffer) {
    if (const auto found = targets_.find(result);
        found != targets_.end() && !found->second.is_taken) {
      Target& target = found->second;
      const Dims dims = scope_.in_list(buffer.dims);
      const bool fits = target.buffer
                            ? list_.buffers[*target.buffer].dims == dims &&
                                  list_.buffers[*target.buffer].dtype == buffer.dtype
                            : target.window->dims == dims && target.window->dtype == buffer.dtype;
      if (fits) {
        if (!target.buffer)
          target.buffer =
              add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Life::Sized);
        target.is_taken = true;
        return *target.buffer;
      }
    }
    const std::uint32_t made =
        add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Life::Value);
    const auto output = scope_.ports.find(result);
    if (output != scope_.ports.end() && list_.buffers[made].life == Life::Value) {
      list_.buffers[made].life = Life::Output;
      list_.buffers[made].port = output->second;
    }
    return made;
  }

  std::vector<Program::Symbol> program_symbols() const {
    std::vector<Program::Symbol> symbols;
    for (const TaskList::Symbol& symbol : list_.symbols) {
      symbols.push_back({symbol.name, symbol.lo, symbol.hi, symbol.buffer, symbol.axis});
    }
    return symbols;
  }
  std::optional<std::size_t> symbol_number(const std::string& name) const {
    const auto found = std::ranges::find(list_.symbols, name, &TaskList::Symbol::name);
    if (found == list_.symbols.end()) return std::nullopt;
    return static_cast<std::size_t>(found - list_.symbols.begin());
  }

  // The values by number of their symbol; nothing where one cannot be, or is none of the program's.
  std::optional<std::map<std::size_t, std::int64_t>> symbol_numbers(
      const DimBindings& values) const {
    std::map<std::size_t, std::int64_t> numbers;
    for (const auto& [name, value] : values) {
      const auto number = symbol_number(name);
      if (!number) return std::nullopt;
      const TaskList::Symbol& symbol = list_.symbols[*number];
      if (value.constant() < symbol.lo || value.constant() > symbol.hi) return std::nullopt;
      numbers.emplace(*number, value.constant());
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
    call.work = scope_.in_list(cuda::block_count(nest, binding));
    call.kernel = add_kernel(nest, name);
    list_.kernels[call.kernel].threads = binding.threads;
    list_.kernels[call.kernel].scratch_bytes =
        scope_.in_list(cuda::scratch_per_block(nest, binding));
  }

  void set_library_kernel(const cuda::DeviceKernel& made, TaskList::Call& call) {
    call.extents = scope_.in_list(Dims(made.library_extents));
    const std::string description = to_string(*made.library);
    const auto [found, is_new] = shared_.kernels.try_emplace(description, list_.kernels.size());
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
        ++shared_.step_count;
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
      decision.node = id.index() < original_bound_ ? id : NodeId{};
      decision.name = node_name(id) + kernels.suffix;
      TaskList::Task task;
      task.name = graph_.value(results.front()).name;
      decision.first_step = shared_.step_count;
      for (const MadeVersion* made : wanted_versions(kernels)) {
        const Version& version = made->first;
        TaskList::Way way;
        way.candidate = decision.candidates[version.candidate].name;
        for (const MadeKernel& kernel : made->second) {
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
            if (const auto symbol = guard_symbol(version)) {
              way.when.push_back({static_cast<std::uint32_t>(*symbol), version.lo, version.hi});
            }
          }
          task.ways.push_back(way);
          shared_.step_count += way.calls.size();
        }
      }
      decision.step_count = shared_.step_count - decision.first_step;
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
      for (const MadeVersion* made : wanted_versions(kernels)) {
        for (const MadeKernel& kernel : made->second) {
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

  // Where the list has no symbol such as versions ask about, any of them does.
  std::vector<const MadeVersion*> wanted_versions(const ChosenKernels& kernels) {
    std::vector<const MadeVersion*> wanted;
    for (const MadeVersion& made : kernels.versions) {
      const bool is_for_all = made.first.symbol.empty() || guard_symbol(made.first);
      if (is_for_all || wanted.empty()) wanted.push_back(&made);
    }
    return wanted;
  }

  // The symbol of the list that a version asks about, if it is one.
  std::optional<std::size_t> guard_symbol(const Version& version) {
    const auto name = scope_.in_list(Dim::symbol(version.symbol)).symbol_name();
    return name ? symbol_number(*name) : std::nullopt;
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
        shared_.forms.try_emplace({source, text}, static_cast<std::uint32_t>(list_.buffers.size()));
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
  void set_numbers(TaskList::Call& call, const LoopNest& nest) {
    call.extents = scope_.in_list(nest.extents);
    call.work = scope_.in_list(work_items(nest));
  }

  // A node goes by its first result.
  const std::string& node_name(NodeId id) const {
    const std::vector<ValueId>& results = graph_.node(id).results;
    return graph_
        .value(*std::find_if(results.begin(), results.end(),
                             [](ValueId result) { return bool(result); }))
        .name;
  }

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
    bool& all = shared_.is_looked_up.try_emplace(buffer, true).first->second;
    all = all && is_lookup && list_.buffers[buffer].life == Life::Constant;
  }

  // Nests that read the same but for their names are one kernel.
  std::uint32_t add_kernel(LoopNest nest, const std::string& name) {
    nest.name.clear();
    // What a kernel needs for itself is said in the list's symbols, which may be others for the
    // same nest.
    const Dim scratch = scope_.in_list(scratch_bytes(nest));
    const std::string text = to_string(nest) + (scratch.is_constant() ? "" : to_string(scratch));
    const auto [found, is_new] = shared_.kernels.try_emplace(text, list_.kernels.size());
    if (is_new) {
      nest.name = concat("k", list_.kernels.size());
      list_.kernels.push_back({name, std::move(nest), scratch});
    }
    return static_cast<std::uint32_t>(found->second);
  }

  bool is_kernels_alone() const {
    return std::ranges::none_of(list_.tasks, [](const TaskList::Task& task) {
      return task.host || task.branch || task.loop;
    });
  }

  void add_outputs() {
    const bool is_mixed = !is_kernels_alone();
    std::vector<bool> is_taken(list_.buffers.size(), false);
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const ValueId value = graph_.outputs()[k];
      const std::uint32_t made = buffers_.at(value);
      const TaskList::Buffer buffer = list_.buffers[made];
      if (buffer.life == Life::Output && buffer.port == k && made < is_taken.size() &&
          !is_taken[made]) {
        is_taken[made] = true;
        list_.outputs.push_back(made);
        continue;
      }
      // Whoever runs operators gives what is there as it is.
      const Life life = list_.buffers[root_of(list_, made)].life;
      const bool is_opaque = buffer.opaque || !nests::is_compilable(buffer.dtype);
      if (is_opaque || (is_mixed && life != Life::Value && life != Life::Output)) {
        list_.outputs.push_back(scope_.whole(value));
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
      ++shared_.step_count;
    }
  }

  const Graph& graph_;
  const CompileOptions& options_;
  SharedKernels& shared_;
  TaskList& list_;
  GraphScope scope_;
  std::unordered_map<ValueId, std::uint32_t>& buffers_;  // the scope's
  std::map<ValueId, Target> targets_;
  std::unordered_map<std::string, ChosenForNode> chosen_;
  std::unordered_map<std::string, Prepared>
      prepared_;  // by signature and which operands are constant
  std::map<std::pair<const nests::Packing*, std::uint32_t>, std::uint32_t>
      packed_;                                                    // of a constant
  std::unordered_map<std::uint32_t, std::vector<bool>> lookups_;  // by kernel, for its arguments
  static constexpr std::int64_t kSmallWeight = 64;   // two products with 255 stay below 2^15
  std::map<std::uint32_t, bool> has_small_weights_;  // by buffer, of constants of bytes
  const std::size_t original_bound_;
  bool is_body_ = false;
};

}  // namespace

TaskList select(const Graph& graph, const CompileOptions& options) {
  SharedKernels shared;
  const std::optional<Graph> flat = without_groups_of_data(graph, shared);
  Selector(flat ? *flat : graph, options, shared, graph.node_id_bound()).run();
  return std::move(shared.list);
}

}  // namespace tenon::codegen
