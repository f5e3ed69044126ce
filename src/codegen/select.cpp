#include "codegen/select.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/control.h"
#include "codegen/general_kernels.h"
#include "codegen/graph_scope.h"
#include "codegen/guards.h"
#include "codegen/packed_tables.h"
#include "codegen/processor_tasks.h"
#include "codegen/task_order.h"
#include "expr/fused_groups.h"
#include "expr/signature.h"
#include "ir/constraint.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "nests/schedule/specialise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace tenon::codegen {
namespace {

// Returns whether the node is a reshape of its operand.
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

// Returns a copy in which fused groups that no kernel computes are inlined; no value without such
// groups.
std::optional<Graph> without_groups_of_data(const Graph& graph, SharedKernels& shared) {
  TaskList nothing;
  GraphScope scope(graph, nothing);
  const auto bind = [&](ValueId value) {
    if (!value || !graph.value(value).type.is_tensor()) return;
    for (const Dim& dim : graph.value(value).type.tensor().dims) {
      if (const auto symbol = dim.symbol_name()) scope.alias(*symbol, Dim(0));
    }
  };
  for (ValueId input : graph.inputs()) bind(input);
  std::vector<NodeId> groups;
  for (NodeId id : graph.nodes_in_order()) {
    if (is_fused_group(graph, id) && (!scope.knows_extents(id) || !shared.may_be_kernel(graph, id)))
      groups.push_back(id);
    for (ValueId result : graph.node(id).results) bind(result);
  }
  if (groups.empty()) return std::nullopt;
  Graph copy = graph;
  for (const NodeId group : groups) inline_group(copy, group);
  return copy;
}

std::shared_ptr<TaskWriter> make_writer(const TaskContext& context) {
  TENON_ASSERT(context.options.target != nullptr, "code is made for a target");
  std::shared_ptr<TaskWriter> own = context.options.target->task_writer(context);
  return own ? own : processor_tasks(context);
}

class Selector {
 public:
  // Selector of the model's graph; `original_bound`: upper bound of the node ids of the caller's
  // graph.
  Selector(const Graph& graph, const CompileOptions& options, SharedKernels& shared,
           std::size_t original_bound)
      : graph_(graph),
        options_(options),
        shared_(shared),
        list_(shared.list),
        scope_(graph, shared.list),
        buffers_(scope_.buffers),
        writer_(make_writer({options, shared, scope_, original_bound})) {}

  void run() {
    list_.name = graph_.name;
    add_inputs();
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      scope_.ports.try_emplace(graph_.outputs()[k], static_cast<std::uint32_t>(k));
    }
    for (NodeId id : graph_.nodes_in_order()) add_node(id);
    add_outputs();
    add_checks(0, kNoBuffer);
    if (!options_.target->specialises_kernels_to_extents()) share_general_kernels(list_);
    for (auto& [buffer, is_lookup] : shared_.is_looked_up)
      list_.buffers[buffer].is_looked_up = is_lookup;
    if (options_.target->has_packed_lookups()) use_packed_tables(list_, options_.target->facts());
  }

  // Selector of a body.
  AddedBody run_body(GraphScope& around, const BodyRequest& request) {
    is_body_ = true;
    AddedBody added;
    const auto begin = static_cast<std::uint32_t>(list_.tasks.size());
    for (std::size_t k = 0; k < request.inputs.size(); ++k)
      added.inputs.push_back(bind_input(around, request.inputs[k], k));
    for (std::size_t k = 0; k < request.outputs.size(); ++k) {
      const BodyRequest::Output& output = request.outputs[k];
      Destination target{output.into, output.window};
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
  // Requested destination of a body's output.
  struct Destination {
    std::optional<std::uint32_t> buffer;  // This buffer.
    // Otherwise a slot of its own, with a slice of this type.
    std::optional<BodyRequest::Output::Slice> window;
    bool is_taken = false;
  };

  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims,
                           Lifetime lifetime) {
    return scope_.add_buffer(name, dtype, dims, lifetime);
  }

  void add_inputs() {
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      TaskList::Buffer buffer;
      buffer.name = input.name;
      buffer.lifetime = Lifetime::Input;
      buffer.port = static_cast<std::uint32_t>(k);
      if (input.type.is_tensor()) {
        buffer.dtype = input.type.tensor().dtype;
      } else {
        buffer.opaque = input.type;
      }
      const auto id = static_cast<std::uint32_t>(list_.buffers.size());
      list_.buffers.push_back(std::move(buffer));
      scope_.bind(input.type, id);
      list_.inputs.push_back(id);
      buffers_[graph_.inputs()[k]] = id;
    }
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      if (input.type.is_tensor())
        list_.buffers[list_.inputs[k]].dims = scope_.in_list(input.type.tensor().dims);
    }
  }

  // Binds the symbols of a body's input to known extents of the enclosing graph.
  void alias_symbols(GraphScope& around, const Type& declared, const Type& given) {
    if (!declared.is_tensor() || !given.is_tensor() ||
        declared.tensor().rank() != given.tensor().rank())
      return;
    for (std::size_t axis = 0; axis < declared.tensor().rank(); ++axis) {
      const auto symbol = declared.tensor().dims[axis].symbol_name();
      const Dim& dim = given.tensor().dims[axis];
      if (symbol && !scope_.has(*symbol) && around.is_resolved(dim))
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
      // The enclosing graph does not know the tensor type, or its extents. The identity checks the
      // declared type at run time.
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
    scope_.bind(declared, buffer);
    return buffer;
  }

  void add_checks(std::uint32_t begin, std::uint32_t end) {
    for (const Constraint& constraint : constraints_of(graph_)) {
      if (!scope_.is_resolved(constraint.a) || !scope_.is_resolved(constraint.b)) continue;
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
    // Bodies have their own copies of captured constants.
    if (const auto known = shared_.constants.find(key);
        is_body_ && is_dense && known != shared_.constants.end()) {
      buffers_[result] = known->second;
      return;
    }
    const Dims dims(constant.shape().begin(), constant.shape().end());
    const std::uint32_t buffer =
        add_buffer(graph_.value(result).name, constant.dtype(), dims, Lifetime::Constant);
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
      add_control_tasks(scope_, id, options_.target->writes_results_in_bodies(),
                        [&](GraphScope& around, const BodyRequest& request) {
                          const std::optional<Graph> graph =
                              without_groups_of_data(*request.graph, shared_);
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
    } catch (InternalError& error) {
      error.locate(graph_.location(id));
      error.add_details(signature_of(graph_, id));
      throw;
    } catch (Error& error) {
      error.locate(graph_.location(id));
      throw;
    }
  }

  NodeNests& prepared(NodeId id) {
    std::string signature = signature_of(graph_, id);
    if (signature.empty()) signature = concat("node ", id.index());
    for (ValueId operand : graph_.node(id).operands) {
      const auto buffer = operand ? buffers_.find(operand) : buffers_.end();
      const bool is_constant =
          buffer != buffers_.end() && list_.buffers[buffer->second].lifetime == Lifetime::Constant;
      signature += !is_constant ? 'v' : has_small_weights(buffer->second) ? 's' : 'c';
    }
    if (const auto known = prepared_.find(signature); known != prepared_.end())
      return known->second;
    std::vector<Expr> exprs = nests::node_exprs(graph_, id);
    TENON_ASSERT(!exprs.empty(), "asked of what a kernel computes");
    NestSequence sequence;
    // Nests get the name of each node that uses them.
    if (!is_view(exprs)) {
      sequence =
          nests::build_nests("", exprs, options_.target->facts().heuristics.min_shared_iterations);
    }
    note_small_weights(graph_.node(id), sequence);
    NodeNests made{std::move(exprs), std::move(sequence), footprint_of(graph_, id)};
    return prepared_.emplace(std::move(signature), std::move(made)).first->second;
  }

  void add_kernels(NodeId id, NodeNests& prepared) {
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
      if (buffer.role != NestSequence::BufferRole::Result) continue;
      const ValueId result = results.at(buffer.index);
      buffers_[result] = add_result(result, buffer);
    }
    // Alternatives in order: specialized shapes, then the general kernels for the remaining values.
    std::vector<Guards> left = {{}};
    for (const DimBindings& values : options_.specialised_shapes) {
      if (is_body_) break;
      const auto numbers = symbol_numbers(values);
      if (!numbers || !depends_on(sequence, values)) continue;
      DividedGuards divided = divide(left, *numbers, list_.symbols);
      if (!divided.inside.empty()) {
        NodeNests special{exprs, specialised(sequence, values), prepared.footprint};
        writer_->add_tasks(id, results, special, divided.inside);
      }
      left = std::move(divided.outside);
    }
    if (!left.empty()) writer_->add_tasks(id, results, prepared, left);
  }

  // Marks int8 weights whose pairwise products fit 16 bits; kernels rely on it (VPMADDUBSW).
  void note_small_weights(const Node& node, NestSequence& sequence) {
    for (NestSequence::NestCall& part : sequence.parts) {
      std::size_t given = 0;
      for (NestBuffer& buffer : part.nest.buffers) {
        if (buffer.storage == StorageClass::Scratch) continue;
        const NestSequence::Buffer& from = sequence.buffers[part.buffers[given++]];
        if (from.role != NestSequence::BufferRole::Operand) continue;
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
      Destination& target = found->second;
      const Dims dims = scope_.in_list(buffer.dims);
      const bool fits = target.buffer
                            ? list_.buffers[*target.buffer].dims == dims &&
                                  list_.buffers[*target.buffer].dtype == buffer.dtype
                            : target.window->dims == dims && target.window->dtype == buffer.dtype;
      if (fits) {
        if (!target.buffer)
          target.buffer =
              add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Lifetime::Sized);
        target.is_taken = true;
        return *target.buffer;
      }
    }
    const std::uint32_t made =
        add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Lifetime::Value);
    const auto output = scope_.ports.find(result);
    if (output != scope_.ports.end() && list_.buffers[made].lifetime == Lifetime::Value) {
      list_.buffers[made].lifetime = Lifetime::Output;
      list_.buffers[made].port = output->second;
    }
    return made;
  }

  // Maps values to symbol indices; no value if one is out of range or the symbol is unknown.
  std::optional<std::map<std::size_t, std::int64_t>> symbol_numbers(
      const DimBindings& values) const {
    std::map<std::size_t, std::int64_t> numbers;
    for (const auto& [name, value] : values) {
      const auto number = symbol_number(list_, name);
      if (!number) return std::nullopt;
      const TaskList::Symbol& symbol = list_.symbols[*number];
      if (value.constant() < symbol.lo || value.constant() > symbol.hi) return std::nullopt;
      numbers.emplace(*number, value.constant());
    }
    return numbers;
  }

  bool is_kernel_only() const {
    return std::ranges::none_of(list_.tasks, [](const TaskList::Task& task) {
      return task.host || task.branch || task.loop;
    });
  }

  void add_outputs() {
    const bool is_mixed = !is_kernel_only();
    std::vector<bool> is_taken(list_.buffers.size(), false);
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const ValueId value = graph_.outputs()[k];
      const std::uint32_t made = buffers_.at(value);
      const TaskList::Buffer buffer = list_.buffers[made];
      if (buffer.lifetime == Lifetime::Output && buffer.port == k && made < is_taken.size() &&
          !is_taken[made]) {
        is_taken[made] = true;
        list_.outputs.push_back(made);
        continue;
      }
      // Programs with host operators return existing values directly.
      const Lifetime lifetime = list_.buffers[root_of(list_, made)].lifetime;
      const bool is_opaque = buffer.opaque || !nests::is_compilable(buffer.dtype);
      if (is_opaque || (is_mixed && lifetime != Lifetime::Value && lifetime != Lifetime::Output)) {
        list_.outputs.push_back(scope_.named_whole(value));
        continue;
      }
      // Inputs, constants, views and repeated outputs are copied for the caller.
      const TensorType& type = graph_.value(value).type.tensor();
      const std::uint32_t copy =
          add_buffer(graph_.value(value).name, type.dtype, type.dims, Lifetime::Output);
      list_.buffers[copy].port = static_cast<std::uint32_t>(k);
      list_.outputs.push_back(copy);
      NestSequence sequence =
          nests::build_nests("copy", {operand_expr(0, {type.dtype, {product(type.dims)}, {}})});
      if (sequence.parts.empty()) continue;  // A tensor without elements.
      TaskList::Call call;
      for (std::size_t id : sequence.parts.front().buffers) {
        const bool is_operand = sequence.buffers[id].role == NestSequence::BufferRole::Operand;
        call.buffers.push_back(is_operand ? made : copy);
      }
      TaskList::Task task;
      task.kind = TaskList::Task::Kind::Copy;
      task.value = graph_.value(value).name;
      task.name = concat("copy ", task.value);
      writer_->add_copy(std::move(sequence.parts.front().nest), std::move(call), std::move(task));
      ++shared_.step_count;
    }
  }

  const Graph& graph_;
  const CompileOptions& options_;
  SharedKernels& shared_;
  TaskList& list_;
  GraphScope scope_;
  std::unordered_map<ValueId, std::uint32_t>& buffers_;  // The scope's buffers.
  std::map<ValueId, Destination> targets_;
  const std::shared_ptr<TaskWriter> writer_;
  std::unordered_map<std::string, NodeNests>
      prepared_;                                    // By signature and which operands are constant.
  static constexpr std::int64_t kSmallWeight = 64;  // Two products with 255 stay below 2^15.
  std::map<std::uint32_t, bool> has_small_weights_;  // By buffer, for int8 constants.
  bool is_body_ = false;
};

}  // namespace

namespace {

void add_states(const Graph& graph, TaskList& list) {
  for (const Graph::State& from : graph.states) {
    Program::State& state = list.states.emplace_back();
    state.input = static_cast<std::uint32_t>(from.input);
    state.output = static_cast<std::uint32_t>(from.output);
    state.may_overwrite = from.may_overwrite;
    state.starts_with_zeros = from.starts_with_zeros;
    if (!from.initial) continue;
    state.initial = static_cast<std::uint32_t>(list.buffers.size());
    TaskList::Buffer constant;
    constant.name = graph.value(graph.inputs()[from.input]).name;
    constant.dtype = from.initial->dtype();
    constant.dims = Dims(from.initial->shape().begin(), from.initial->shape().end());
    constant.lifetime = Lifetime::Constant;
    list.buffers.push_back(std::move(constant));
    list.constants.emplace(state.initial, *from.initial);
  }
}

}  // namespace

Selected select(const Graph& graph, const CompileOptions& options) {
  SharedKernels shared;
  const std::optional<Graph> flat = without_groups_of_data(graph, shared);
  Selector(flat ? *flat : graph, options, shared, graph.node_id_bound()).run();
  add_states(graph, shared.list);
  if (options.target->reorders_tasks()) order_tasks(shared.list, shared.decisions);
  return {std::move(shared.list), std::move(shared.decisions)};
}

}  // namespace tenon::codegen
