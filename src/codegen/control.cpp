#include "codegen/control.h"

#include "base/error.h"
#include "codegen/specialised_body.h"
#include "expr/node_label.h"
#include "ops/definition/registry.h"
#include "ops/families/captures.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

using Task = TaskList::Task;

std::uint32_t buffer_or_none(GraphScope& scope, const Node& node, std::size_t operand) {
  return operand < node.operands.size() && node.operands[operand]
             ? scope.whole(node.operands[operand])
             : kNoBuffer;
}

const std::string& first_name(const Graph& graph, const Node& node) {
  const auto first =
      std::ranges::find_if(node.results, [](ValueId result) { return result.is_valid(); });
  TENON_ASSERT(first != node.results.end(), "a node gives something");
  return graph.value(*first).name;
}

class ControlWriter {
 public:
  ControlWriter(GraphScope& scope, NodeId id, bool writes_in_place, const AddBody& add_body)
      : scope_(scope),
        graph_(scope.graph()),
        node_(graph_.node(id)),
        writes_in_place_(writes_in_place),
        add_body_(add_body),
        index_(static_cast<std::uint32_t>(scope.list().tasks.size())) {
    Task task;
    task.name = node_label(graph_, id);
    task.value = first_name(graph_, node_);
    scope.list().tasks.push_back(std::move(task));
  }

  void add_branch() {
    BranchStep branch;
    branch.condition = scope_.whole(node_.operands.at(0));
    std::vector<std::uint32_t> results;
    for (ValueId result : node_.results)
      results.push_back(result ? scope_.add_value(result, false) : kNoBuffer);
    std::vector<std::uint32_t> given[2];
    for (std::size_t k = 0; k < 2; ++k) {
      std::vector<Input> inputs;
      for (std::size_t operand = 1; operand < node_.operands.size(); ++operand)
        inputs.push_back(captured(operand));
      std::vector<BodyRequest::Output> outputs(node_.bodies[k].outputs().size());
      for (std::size_t out = 0; out < outputs.size() && out < results.size(); ++out) {
        const bool may = writes_in_place_ && results[out] != kNoBuffer &&
                         scope_.list().buffers[results[out]].lifetime != Lifetime::Sized;
        if (may) outputs[out].into = results[out];
      }
      given[k] = body(k, inputs, outputs).outputs;
      (k == 0 ? branch.then_end : branch.else_end) =
          static_cast<std::uint32_t>(scope_.list().tasks.size());
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k] != kNoBuffer)
        branch.results.push_back({results[k], given[0].at(k), given[1].at(k)});
    }
    Task& task = scope_.list().tasks[index_];
    task.kind = Task::Kind::Branch;
    task.branch = std::move(branch);
    finish();
  }

  void add_loop() {
    const std::string& op = node_.op->name;
    // op-name: operand layouts differ between these nodes
    const bool is_loop = op == "loop", is_sequence = op == "sequence_map";
    const std::size_t captured_values = captured_count(node_), first = is_loop ? 2 : 0;
    const std::size_t carried = is_loop       ? number("carried_count", 0)
                                : is_sequence ? 0
                                              : number("state_count", 0);
    const std::size_t scanned = is_loop ? 0 : node_.operands.size() - captured_values - carried;
    const std::size_t leading = is_loop ? 1 : 0;  // Index of the first output after the condition.
    LoopStep loop;
    std::vector<Input> inputs;
    if (is_loop) {
      loop.trip_count = buffer_or_none(scope_, node_, 0);
      loop.condition = buffer_or_none(scope_, node_, 1);
      inputs.push_back({std::nullopt, TensorType{DType::I64, {}, {}}});
      inputs.push_back({std::nullopt, TensorType{DType::Bool, {}, {}}});
      const bool is_limited = !node_.operands.empty() && node_.operands[0];
      if (const Constant* trips = is_limited ? graph_.constant_of(node_.operands[0]) : nullptr) {
        if (trips->size() == 1 && loop.condition == kNoBuffer)
          loop.run_count = static_cast<double>(trips->materialise().integer_at(0));
      }
    }
    for (std::size_t k = 0; k < carried; ++k) {
      const ValueId initial = node_.operands[first + k];
      loop.carried.push_back({scope_.whole(initial)});
      inputs.push_back({std::nullopt, carried_type(k, initial)});
    }
    for (std::size_t k = 0; k < scanned; ++k) {
      const ValueId source = node_.operands[first + carried + k];
      loop.scanned.push_back({scope_.whole(source), 0, entry("input_axes", k),
                              entry("input_reverse", k) != 0, is_sequence});
      inputs.push_back({std::nullopt, part_type(graph_.value(source).type, loop.scanned.back())});
    }
    if (!loop.scanned.empty() && !is_sequence) set_run_count(node_.operands[first + carried], loop);
    for (std::size_t operand = node_.operands.size() - captured_values;
         operand < node_.operands.size(); ++operand) {
      inputs.push_back(captured(operand));
    }
    std::vector<BodyRequest::Output> outputs(node_.bodies[0].outputs().size());
    for (std::size_t k = 0; k < carried && writes_in_place_; ++k)
      outputs[leading + k].like = (is_loop ? 2 : 0) + k;
    for (std::size_t k = carried; k < node_.results.size(); ++k) {
      outputs[leading + k].window =
          is_sequence ? std::nullopt : window(k, entry("output_axes", k - carried), loop);
    }
    const AddedBody added = body(0, inputs, outputs);
    loop.end = static_cast<std::uint32_t>(scope_.list().tasks.size());
    if (is_loop) {
      loop.counter = added.inputs[0];
      loop.goes_on = added.inputs[1];
      if (loop.condition != kNoBuffer) loop.next_condition = added.outputs[0];
    }
    for (std::size_t k = 0; k < carried; ++k) {
      LoopStep::Carried& each = loop.carried[k];
      each.in = added.inputs[(is_loop ? 2 : 0) + k];
      each.out = added.outputs[leading + k];
      each.is_direct = added.is_direct[leading + k];
      if (node_.results[k]) add_carried_result(node_.results[k], each);
    }
    for (std::size_t k = 0; k < scanned; ++k)
      loop.scanned[k].in = added.inputs[(is_loop ? 2 : 0) + carried + k];
    for (std::size_t k = carried; k < node_.results.size(); ++k) {
      if (!node_.results[k]) continue;
      LoopStep::Stacked each;
      each.out = added.outputs[leading + k];
      each.is_direct = added.is_direct[leading + k];
      each.result = scope_.add_value(node_.results[k], false);
      each.axis = entry("output_axes", k - carried);
      each.is_reversed = entry("output_reverse", k - carried) != 0;
      each.is_sequence = is_sequence;
      loop.stacked.push_back(each);
    }
    Task& task = scope_.list().tasks[index_];
    task.kind = Task::Kind::Loop;
    task.loop = std::move(loop);
    finish();
  }

 private:
  struct Input {
    std::optional<ValueId> value;  // The value of the enclosing graph that it forwards.
    Type type;
  };

  std::size_t number(const char* name, std::int64_t otherwise) const {
    const AttrValue* value = node_.attrs.find(name);
    return static_cast<std::size_t>(value ? std::get<Dim>(*value).constant() : otherwise);
  }
  std::int64_t entry(const char* name, std::size_t position) const {
    const AttrValue* value = node_.attrs.find(name);
    if (value == nullptr) return 0;
    const Dims& list = std::get<Dims>(*value);
    return position < list.size() ? list[position].constant() : 0;
  }

  Input captured(std::size_t operand) const {
    return {node_.operands[operand], graph_.value(node_.operands[operand]).type};
  }

  // Type of a carried value, if it is the same for all iterations: known if the initial value
  // already has the extents of the result.
  Type carried_type(std::size_t k, ValueId initial) const {
    const Type& given = graph_.value(initial).type;
    if (!node_.results[k]) return {};
    const Type& left = graph_.value(node_.results[k]).type;
    return given.is_tensor() && left.is_tensor() && given.tensor().dims == left.tensor().dims
               ? given
               : Type{};
  }

  static Type part_type(const Type& type, const LoopStep::Scanned& scanned) {
    if (scanned.is_sequence || !type.is_tensor() || type.tensor().rank() == 0) return {};
    TensorType part{type.tensor().dtype, type.tensor().dims, {}};
    const auto rank = static_cast<std::int64_t>(part.rank());
    const std::int64_t axis = scanned.axis < 0 ? scanned.axis + rank : scanned.axis;
    if (axis < 0 || axis >= rank) return {};
    part.dims.erase(part.dims.begin() + axis);
    return part;
  }

  void set_run_count(ValueId source, LoopStep& loop) const {
    const Type& type = graph_.value(source).type;
    if (!type.is_tensor() || type.tensor().rank() == 0) return;
    const auto rank = static_cast<std::int64_t>(type.tensor().rank());
    const std::int64_t axis = loop.scanned.front().axis < 0 ? loop.scanned.front().axis + rank
                                                            : loop.scanned.front().axis;
    const Dim& count = type.tensor().dims.at(static_cast<std::size_t>(axis));
    loop.run_count = count.is_constant() ? static_cast<double>(count.constant()) : 0;
  }

  // Returns the slice that one iteration contributes to a result stacked along its first axis, if
  // its type is known before the loop.
  std::optional<BodyRequest::Output::Slice> window(std::size_t k, std::int64_t axis,
                                                   const LoopStep& loop) {
    if (!writes_in_place_ || !node_.results[k] || axis != 0 || loop.condition != kNoBuffer)
      return std::nullopt;
    const Type& type = graph_.value(node_.results[k]).type;
    if (!type.is_tensor() || type.tensor().rank() == 0) return std::nullopt;
    for (const Dim& dim : type.tensor().dims) {
      if (!scope_.is_resolved(dim)) return std::nullopt;
    }
    Dims dims = scope_.in_list(type.tensor().dims);
    dims.erase(dims.begin());
    return BodyRequest::Output::Slice{type.tensor().dtype, std::move(dims)};
  }

  // Allocates a carried result: two alternating buffers, planned in the arena if the extents are
  // static and equal in all iterations.
  void add_carried_result(ValueId result, LoopStep::Carried& each) {
    each.result = scope_.add_value(result, false);
    if (!each.is_direct) return;
    TaskList::Buffer& made = scope_.list().buffers[each.result];
    if (made.lifetime == Lifetime::Sized) return;
    if (made.dims != scope_.list().buffers[each.in].dims) {
      made.lifetime = Lifetime::Sized;
      return;
    }
    TaskList::Buffer spare = made;
    spare.lifetime = Lifetime::Value;
    spare.port = 0;
    scope_.list().buffers.push_back(std::move(spare));
    each.spare = static_cast<std::uint32_t>(scope_.list().buffers.size() - 1);
  }

  AddedBody body(std::size_t k, const std::vector<Input>& inputs,
                 const std::vector<BodyRequest::Output>& outputs) {
    std::vector<Type> types;
    for (const Input& input : inputs) types.push_back(input.type);
    const SpecialisedBody made = specialised_body(graph_, node_, node_.bodies[k], types);
    BodyRequest request;
    request.graph = &made.graph;
    for (const std::size_t input : made.inputs) {
      BodyRequest::Input made_input{{}, {}, inputs[input].type};
      if (inputs[input].value) {
        // Kernels read the base of a view; host operators need the view's extents, which the body
        // may not know.
        made_input.buffer = scope_.buffers.at(*inputs[input].value);
        made_input.whole = scope_.whole(*inputs[input].value);
      }
      request.inputs.push_back(std::move(made_input));
    }
    request.outputs = outputs;
    return add_body_(scope_, request);
  }

  void finish() {
    Task& task = scope_.list().tasks[index_];
    derive_uses(scope_.list(), task);
    for (ValueId result : node_.results) {
      if (!result) continue;
      const std::uint32_t buffer = scope_.buffers.at(result);
      if (scope_.list().buffers[buffer].lifetime == Lifetime::Sized)
        scope_.bind(graph_.value(result).type, buffer);
    }
  }

  GraphScope& scope_;
  const Graph& graph_;
  const Node& node_;
  const bool writes_in_place_;
  const AddBody& add_body_;
  const std::uint32_t index_;
};

}  // namespace

void add_host_task(GraphScope& scope, NodeId id) {
  const Graph& graph = scope.graph();
  const Node& node = graph.node(id);
  Task task;
  task.kind = Task::Kind::Host;
  task.name = node_label(graph, id);
  task.value = first_name(graph, node);
  TaskList::Host host;
  host.op = node.op;
  for (const auto& [name, value] : node.attrs) {
    if (const auto* dim = std::get_if<Dim>(&value)) {
      host.attributes.set(name, scope.in_list(*dim));
    } else if (const auto* dims = std::get_if<Dims>(&value)) {
      host.attributes.set(name, scope.in_list(*dims));
    } else {
      host.attributes.set(name, value);
    }
  }
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    host.operands.push_back(buffer_or_none(scope, node, k));
    const Type type = node.operands[k] ? graph.value(node.operands[k]).type : Type{};
    if (!type.is_tensor() || type.tensor().layout.is_empty()) continue;
    host.layouts.resize(k + 1);
    host.layouts[k] = type.tensor().layout.text();
  }
  for (ValueId result : node.results)
    host.results.push_back(result ? scope.add_value(result, true) : kNoBuffer);
  host.where = graph.location(id);
  task.host = std::move(host);
  derive_uses(scope.list(), task);
  scope.list().tasks.push_back(std::move(task));
  for (ValueId result : node.results) {
    if (result) scope.bind(graph.value(result).type, scope.buffers.at(result));
  }
}

void add_host_task(GraphScope& scope, std::string_view op, std::uint32_t operand,
                   std::uint32_t result) {
  Task task;
  task.kind = Task::Kind::Host;
  task.value = scope.list().buffers[result].name;
  task.name = concat(op, " ", task.value);
  task.host =
      TaskList::Host{&all_ops().get(op), {}, {operand}, {result}, {}, concat("'", task.value, "'")};
  derive_uses(scope.list(), task);
  scope.list().tasks.push_back(std::move(task));
}

void add_control_tasks(GraphScope& scope, NodeId id, bool writes_in_place,
                       const AddBody& add_body) {
  ControlWriter writer(scope, id, writes_in_place, add_body);
  // op-name: `if` has its own kind of task
  if (scope.graph().node(id).op->name == "if") {
    writer.add_branch();
  } else {
    writer.add_loop();
  }
}

}  // namespace tenon::codegen
