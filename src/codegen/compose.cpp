#include "codegen/compose.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "codegen/partition.h"
#include "codegen/shape_checks.h"
#include "ir/constraint.h"
#include "ir/text.h"
#include "nests/nest_builder.h"
#include "ops/captures.h"
#include "ops/signature.h"

namespace tenon::codegen {
namespace {

// Constants of more elements than this are given to operators as values and not in their text.
constexpr std::int64_t kMaxTextElements = 4096;
// Inference reads the elements of no larger constant.
constexpr std::int64_t kMaxShapeElements = 64;

// Copies nodes of a graph into a new one.
class Extract {
 public:
  explicit Extract(const Graph& from) : from_(from), to_(from.name) {}

  void add_input(ValueId value) {
    if (!made_.contains(value)) made_[value] = to_.add_input(from_.value(value).name, from_.value(value).type);
  }
  // A constant of `holder` (this graph, or the one around it) in place of a value.
  void add_constant(ValueId value, const Graph& holder, ValueId constant) {
    if (made_.contains(value)) return;
    const Node& node = holder.node(holder.value(constant).producer);
    const NodeId id = to_.add_node({node.op, {}, node.attrs, {}, {from_.value(value).name}, node.name});
    made_[value] = to_.node(id).results.front();
  }
  void add_node(NodeId id, std::vector<ValueId> operands, std::vector<Graph> bodies) {
    const Node& node = from_.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, std::move(bodies), {}, node.name};
    for (ValueId operand : operands) copy.operands.push_back(operand ? made_.at(operand) : ValueId{});
    for (ValueId result : node.results) copy.results.push_back(result ? from_.value(result).name : "_");
    const NodeId made = to_.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const ValueId result = to_.node(made).results[k];
      made_[node.results[k]] = result;
      if (from_.has_stated_type(node.results[k])) to_.set_type(result, from_.value(node.results[k]).type);
    }
  }
  void add_node(NodeId id) { add_node(id, from_.node(id).operands, from_.node(id).bodies); }
  void add_output(ValueId value) { to_.add_output(made_.at(value)); }
  bool has(ValueId value) const { return made_.contains(value); }
  Graph take() { return std::move(to_); }

 private:
  const Graph& from_;
  Graph to_;
  std::unordered_map<ValueId, ValueId> made_;
};

// A body for inference alone: what its large constants hold does not matter.
Graph outline(const Graph& body) {
  Graph graph = body;
  forget_constraints(graph);
  for (NodeId id : graph.nodes_in_order()) {
    for (Graph& inner : graph.mutable_node(id).bodies) inner = outline(inner);
    const Constant* constant = graph.constant_of(graph.node(id).results.front());
    if (!constant || constant->base().kind() != Constant::Kind::Dense || constant->size() <= kMaxShapeElements ||
        constant->dtype() == DType::String) {
      continue;
    }
    graph.set_attribute(id, "value", Constant::splat(Tensor(constant->dtype(), {}), constant->shape()));
  }
  return graph;
}

// A node of control flow with the constants that it captures moved into its bodies, where they can be
// packed ahead.
struct Control {
  std::vector<ValueId> operands;
  std::vector<Graph> bodies;

  Control(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::size_t kept = node.operands.size() - captured_count(node);
    const auto is_sunk = [&](std::size_t k) {
      return k >= kept && node.operands[k] && graph.constant_of(node.operands[k]);
    };
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (!is_sunk(k)) operands.push_back(node.operands[k]);
    }
    for (const Graph& body : node.bodies) {
      Extract made(body);
      const std::size_t first = body.inputs().size() - (node.operands.size() - kept);
      for (std::size_t k = 0; k < body.inputs().size(); ++k) {
        const bool is_captured = k >= first;
        if (is_captured && is_sunk(kept + k - first)) {
          made.add_constant(body.inputs()[k], graph, node.operands[kept + k - first]);
        } else {
          made.add_input(body.inputs()[k]);
        }
      }
      for (NodeId inner : body.nodes_in_order()) made.add_node(inner);
      for (ValueId output : body.outputs()) made.add_output(output);
      bodies.push_back(made.take());
      copy_constraints(body, bodies.back());
    }
  }
};

// Takes a graph of kernels alone and gives its number among the parts.
using AddPart = std::function<std::uint32_t(const Graph& graph)>;

// Writes the routine of one graph.
class Composer {
 public:
  Composer(const Graph& graph, const AddPart& add_part) : graph_(graph), add_part_(add_part), partition_(graph) {}

  Routine run() {
    for (ValueId input : graph_.inputs()) routine_.inputs.push_back(slot(input));
    if (is_one_part()) {
      add_whole();
      return std::move(routine_);
    }
    add_given_constants();
    for (const Partition::Group& group : partition_.groups) {
      if (group.work == Work::Control) {
        add_control(group.nodes.front());
      } else {
        add_group(group);
      }
    }
    for (ValueId output : graph_.outputs()) routine_.outputs.push_back(slot(output));
    return std::move(routine_);
  }

 private:
  std::uint32_t slot(ValueId value) {
    const auto [found, is_new] = slots_.try_emplace(value, routine_.slot_count);
    if (is_new) ++routine_.slot_count;
    return found->second;
  }

  // Whether the graph is kernels alone that make each of its outputs, as bodies of recurrent layers are.
  bool is_one_part() const {
    std::set<ValueId> outputs;
    for (ValueId output : graph_.outputs()) {
      const bool is_made = graph_.value(output).producer && !constant_of(output);
      if (!is_made || !outputs.insert(output).second) return false;
    }
    return !outputs.empty() && is_kernels_alone(graph_);
  }
  // The part takes and gives what the graph does, in its order.
  void add_whole() {
    for (ValueId output : graph_.outputs()) routine_.outputs.push_back(slot(output));
    Routine::Step step;
    step.name = graph_.value(graph_.outputs().front()).name;
    step.operands = routine_.inputs;
    step.results = routine_.outputs;
    step.part = add_part_(graph_);
    routine_.steps.push_back(std::move(step));
  }

  const Constant* constant_of(ValueId value) const { return graph_.constant_of(value); }
  bool is_in_text(ValueId value) const {
    const Constant* constant = constant_of(value);
    return constant && (constant->size() <= kMaxTextElements || constant->dtype() == DType::String ||
                        constant->base().kind() != Constant::Kind::Dense);
  }

  // Constants that are wanted as values: by the caller, or by what takes no constants along.
  void add_given_constants() {
    std::vector<ValueId> given;
    const auto give = [&](ValueId value) {
      if (value && constant_of(value) && std::find(given.begin(), given.end(), value) == given.end()) given.push_back(value);
    };
    for (ValueId output : graph_.outputs()) give(output);
    for (const Partition::Group& group : partition_.groups) {
      for (NodeId id : group.nodes) {
        if (group.work == Work::Kernels) continue;
        const std::vector<ValueId> operands = group.work == Work::Control ? Control(graph_, id).operands
                                                                          : graph_.node(id).operands;
        for (ValueId operand : operands) {
          if (operand && (group.work == Work::Control || !is_in_text(operand))) give(operand);
        }
      }
    }
    Extract kernels(graph_), text(graph_);
    std::vector<ValueId> in_kernels, in_text;
    for (ValueId value : given) {
      const bool is_text = !nests::is_compilable(constant_of(value)->dtype());
      (is_text ? text : kernels).add_constant(value, graph_, value);
      (is_text ? in_text : in_kernels).push_back(value);
    }
    add_step(Work::Kernels, kernels, {}, in_kernels);
    add_step(Work::Operators, text, {}, in_text);
  }

  void add_group(const Partition::Group& group) {
    Extract made(graph_);
    std::vector<ValueId> inputs, outputs;
    const auto add_input = [&](ValueId value) {
      if (made.has(value)) return;
      made.add_input(value);
      inputs.push_back(value);
    };
    std::set<std::string> needed, told;
    for (NodeId id : group.nodes) {
      for (ValueId operand : graph_.node(id).operands) {
        if (!operand || made.has(operand)) continue;
        const bool goes_along = constant_of(operand) && (group.work == Work::Kernels || is_in_text(operand));
        if (goes_along) {
          made.add_constant(operand, graph_, operand);
        } else if (const NodeId producer = graph_.value(operand).producer;
                   !producer || constant_of(operand) || group_of(producer) != group_of(id)) {
          add_input(operand);
          collect_told_symbols(graph_.value(operand).type, told);
        }
      }
      collect_symbols(graph_, id, needed);
    }
    // Inputs come before nodes, also those that only tell an extent.
    for (ValueId value : carriers(needed, told, group_of(group.nodes.front()))) add_input(value);
    for (NodeId id : group.nodes) made.add_node(id);
    for (NodeId id : group.nodes) {
      for (ValueId result : graph_.node(id).results) {
        if (!result) continue;
        // What operators give may be the only one to tell an extent.
        std::set<std::string> symbols;
        if (group.work == Work::Operators) collect_told_symbols(graph_.value(result).type, symbols);
        if (!symbols.empty() || is_needed_after(result, group_of(id))) outputs.push_back(result);
      }
    }
    add_step(group.work, made, inputs, outputs);
  }

  std::uint32_t group_of(NodeId id) const { return partition_.group_of[id]; }

  bool is_needed_after(ValueId value, std::uint32_t group) const {
    const std::vector<NodeId>& readers = graph_.readers(value);
    return graph_.is_output(value) ||
           std::any_of(readers.begin(), readers.end(), [&](NodeId reader) { return group_of(reader) != group; });
  }

  // Values made before that have the extents which a group needs to know and its inputs do not tell.
  std::vector<ValueId> carriers(const std::set<std::string>& needed, std::set<std::string> told, std::uint32_t group) {
    std::vector<ValueId> found;
    const auto look_at = [&](ValueId value) {
      std::set<std::string> symbols;
      collect_told_symbols(graph_.value(value).type, symbols);
      const bool is_wanted = std::any_of(symbols.begin(), symbols.end(), [&](const std::string& name) {
        return needed.contains(name) && !told.contains(name);
      });
      if (!is_wanted) return;
      told.insert(symbols.begin(), symbols.end());
      found.push_back(value);
    };
    if (std::includes(told.begin(), told.end(), needed.begin(), needed.end())) return found;
    for (ValueId input : graph_.inputs()) look_at(input);
    for (NodeId id : graph_.nodes_in_order()) {
      for (ValueId result : graph_.node(id).results) {
        // Only what has a slot is still there.
        if (result && !constant_of(result) && group_of(id) < group && slots_.contains(result)) look_at(result);
      }
    }
    return found;
  }

  void add_step(Work work, Extract& made, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
    if (outputs.empty()) return;
    for (ValueId output : outputs) made.add_output(output);
    Graph graph = made.take();
    if (work == Work::Kernels) copy_constraints(graph_, graph);  // operators look at what they are given
    Routine::Step step;
    step.name = graph_.value(outputs.front()).name;
    for (ValueId input : inputs) step.operands.push_back(slot(input));
    for (ValueId output : outputs) step.results.push_back(slot(output));
    if (work == Work::Kernels) {
      step.part = add_part_(graph);
    } else {
      step.kind = Routine::Step::Kind::Operators;
      step.graph = print(graph);
    }
    routine_.steps.push_back(std::move(step));
  }

  void add_control(NodeId id) {
    const Node& node = graph_.node(id);
    const Control control(graph_, id);
    Routine::Step step;
    step.kind = Routine::Step::Kind::Operators;
    for (const Graph& body : control.bodies) step.bodies.push_back(Composer(body, add_part_).run());
    std::vector<ValueId> inputs;
    Extract made(graph_);
    const auto add_input = [&](ValueId value) {
      if (made.has(value)) return;
      made.add_input(value);
      inputs.push_back(value);
    };
    for (ValueId operand : control.operands) {
      if (operand) add_input(operand);
    }
    if (is_plain_scan(node, step.bodies)) {
      make_scan(node, control, step);
    } else {
      std::set<std::string> needed, told;
      for (ValueId value : inputs) collect_told_symbols(graph_.value(value).type, told);
      collect_symbols(graph_, id, needed);
      for (ValueId value : carriers(needed, told, group_of(id))) add_input(value);
      std::vector<Graph> outlines;
      for (const Graph& body : control.bodies) outlines.push_back(outline(body));
      made.add_node(id, control.operands, std::move(outlines));
      for (ValueId value : inputs) step.operands.push_back(slot(value));
    }
    for (ValueId result : node.results) {
      if (!result) continue;
      if (step.name.empty()) step.name = graph_.value(result).name;
      if (step.kind == Routine::Step::Kind::Operators) made.add_output(result);
      step.results.push_back(slot(result));
    }
    if (step.kind == Routine::Step::Kind::Operators) step.graph = print(made.take());
    routine_.steps.push_back(std::move(step));
  }

  // A scan whose body is kernels alone, and whose slices lie together: it needs no copies.
  static bool is_plain_scan(const Node& node, const std::vector<Routine>& bodies) {
    // op-name: the routine's Scan is written for this op
    if (node.op->name != "scan" || bodies.front().steps.size() != 1) return false;
    const Routine& body = bodies.front();
    if (body.steps.front().kind != Routine::Step::Kind::Part || body.steps.front().operands != body.inputs) return false;
    for (ValueId result : node.results) {
      if (!result) return false;
    }
    for (const char* name : {"input_axes", "output_axes"}) {
      const AttrValue* axes = node.attrs.find(name);
      if (!axes) continue;
      for (const Dim& axis : std::get<Dims>(*axes)) {
        if (axis != Dim(0)) return false;
      }
    }
    return body.steps.front().results == body.outputs;
  }

  void make_scan(const Node& node, const Control& control, Routine::Step& step) {
    const auto number = [&](const char* name, std::int64_t otherwise) {
      const AttrValue* value = node.attrs.find(name);
      return static_cast<std::uint32_t>(value ? std::get<Dim>(*value).constant() : otherwise);
    };
    const auto flags = [&](const char* name, std::size_t count) {
      std::vector<bool> list(count, false);
      if (const AttrValue* value = node.attrs.find(name)) {
        const Dims& dims = std::get<Dims>(*value);
        for (std::size_t k = 0; k < std::min(count, dims.size()); ++k) list[k] = dims[k] != Dim(0);
      }
      return list;
    };
    step.kind = Routine::Step::Kind::Scan;
    step.part = step.bodies.front().steps.front().part;
    step.bodies.clear();
    step.state_count = number("state_count", 0);
    step.input_count = number("input_count", 1);
    step.input_is_reversed = flags("input_reverse", step.input_count);
    step.output_is_reversed = flags("output_reverse", node.results.size() - step.state_count);
    for (ValueId operand : control.operands) step.operands.push_back(slot(operand));
    const Dim& count = graph_.value(control.operands[step.state_count]).type.tensor().dims.front();
    step.run_count = count.is_constant() ? static_cast<double>(count.constant()) : 0;
  }

  const Graph& graph_;
  const AddPart& add_part_;
  const Partition partition_;
  Routine routine_;
  std::unordered_map<ValueId, std::uint32_t> slots_;
};

// What a program says about one of its inputs or outputs.
Program::Buffer port(const Value& value, Program::Place place, std::size_t index, std::vector<Program::Symbol>& symbols) {
  Program::Buffer buffer;
  buffer.name = value.name;
  buffer.place = place;
  buffer.offset = index;
  if (!value.type.is_tensor()) {
    buffer.dtype = to_string(value.type);
    buffer.element_bytes = 0;
    return buffer;
  }
  const TensorType& type = value.type.tensor();
  buffer.dtype = to_string(type.dtype);
  buffer.element_bytes = static_cast<std::uint32_t>(info(type.dtype).storage_bytes);
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    if (type.dims[axis].is_constant()) {
      buffer.dims.emplace_back(type.dims[axis].constant());
      continue;
    }
    // Its parts hold extents to what they are made of; here they are only told apart by name.
    const std::string name = to_string(type.dims[axis]);
    auto found = std::find_if(symbols.begin(), symbols.end(), [&](const auto& symbol) { return symbol.name == name; });
    if (found == symbols.end()) {
      const Range range = type.dims[axis].range();
      symbols.push_back({name, range.lo, range.hi, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(axis)});
      found = symbols.end() - 1;
    }
    buffer.dims.push_back(Extent::symbol(static_cast<std::size_t>(found - symbols.begin())));
  }
  return buffer;
}

// The symbols of a program that are symbols of the graph, and not expressions that have only a name.
std::map<std::string, std::size_t> plain_symbols(const Program& program, const Graph& graph) {
  std::map<std::string, std::size_t> plain;
  for (std::size_t k = 0; k < program.symbols.size(); ++k) {
    const Program::Symbol& symbol = program.symbols[k];
    const Dim& dim = graph.value(graph.inputs()[symbol.input]).type.tensor().dims[symbol.axis];
    if (const auto name = dim.symbol_name()) plain.emplace(*name, k);
  }
  return plain;
}

}  // namespace

bool is_kernels_alone(const Graph& graph) {
  std::set<std::string> told;
  for (ValueId input : graph.inputs()) {
    if (!graph.value(input).type.is_tensor()) return false;
    collect_told_symbols(graph.value(input).type, told);
  }
  std::unordered_set<std::string> has_kernel;  // networks repeat themselves
  for (NodeId id : graph.nodes_in_order()) {
    std::string signature = signature_of(graph, id);
    if (signature.empty() || !has_kernel.contains(signature)) {
      if (!kernel_refusal(graph, id).empty()) return false;
      if (!signature.empty()) has_kernel.insert(std::move(signature));
    }
    std::set<std::string> symbols;
    collect_symbols(graph, id, symbols);
    if (!std::includes(told.begin(), told.end(), symbols.begin(), symbols.end())) return false;
  }
  return true;
}

Program compose(const Graph& graph, const CompileOptions& options) {
  Program program;
  program.name = graph.name;
  program.target = target_name(options);
  const AddPart add_part = [&](const Graph& part) {
    program.parts.push_back(compile_kernels(part, options));
    return static_cast<std::uint32_t>(program.parts.size() - 1);
  };
  program.routine = Composer(graph, add_part).run();
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    program.inputs.push_back(static_cast<std::uint32_t>(program.buffers.size()));
    program.buffers.push_back(port(graph.value(graph.inputs()[k]), Program::Place::Input, k, program.symbols));
  }
  program.checks = shape_checks(graph, plain_symbols(program, graph));
  std::vector<Program::Symbol> inner;  // extents that only a run tells
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    program.outputs.push_back(static_cast<std::uint32_t>(program.buffers.size()));
    Program::Buffer output = port(graph.value(graph.outputs()[k]), Program::Place::Output, k, inner);
    output.dims.clear();
    program.buffers.push_back(std::move(output));
  }
  return program;
}

Program compile(const Graph& graph, const CompileOptions& options) {
  return is_kernels_alone(graph) ? compile_kernels(graph, options) : compose(graph, options);
}

std::string print_code(const Graph& graph, const CompileOptions& options, Stage stage) {
  if (is_kernels_alone(graph)) return print_kernels(graph, options, stage);
  std::string parts;
  std::uint32_t count = 0;
  const AddPart add_part = [&](const Graph& part) {
    parts += concat("\npart ", count, "\n", print_kernels(part, options, stage));
    return count++;
  };
  const Routine routine = Composer(graph, add_part).run();
  return to_string(routine) + parts;
}

}  // namespace tenon::codegen
