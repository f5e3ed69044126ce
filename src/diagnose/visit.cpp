#include "diagnose/visit.h"

#include "diagnose/logical_order.h"
#include "expr/fused_groups.h"
#include "host/program_types.h"
#include "reference/evaluate.h"

#include <map>
#include <set>

namespace tenon::diagnose {
namespace {

void show_inputs(const Graph& graph, const std::vector<Datum>& inputs, const OnValue& on_value) {
  for (std::size_t k = 0; k < graph.inputs().size() && k < inputs.size(); ++k) {
    const Value& value = graph.value(graph.inputs()[k]);
    if (inputs[k].is_tensor())
      on_value(value.name,
               in_logical_order(inputs[k].tensor(),
                                value.type.is_tensor() ? value.type.tensor().layout : Layout()));
  }
}

Layout layout_of(const Value& value) {
  return value.type.is_tensor() ? value.type.tensor().layout : Layout();
}

// A value that steps may store, with its producer.
struct StoredValue {
  Layout layout;
  std::string maker;  // first result of its producer
};

void index_values(const Graph& graph, std::map<std::string, StoredValue>& made) {
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    std::string maker;
    for (const ValueId result : node.results) {
      if (!result || graph.constant_of(result) != nullptr) continue;
      if (maker.empty()) maker = graph.value(result).name;
      made.try_emplace(graph.value(result).name,
                       StoredValue{layout_of(graph.value(result)), maker});
    }
    if (is_fused_group(graph, id)) continue;
    for (const Graph& body : node.bodies) index_values(body, made);
  }
}

// Returns for each kernel of a program the buffers that are complete after it: results of its node
// that no later step of the node stores to.
std::vector<std::vector<std::uint32_t>> complete_behind(
    const KernelRunner& runner, const std::map<std::string, StoredValue>& made) {
  const Program& program = runner.program();
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const Program::Step& step = program.steps[k];
    if (step.kind != Program::StepKind::Kernel || !runner.runs(step)) continue;
    for (const std::uint32_t id : step.buffers) {
      const Program::Buffer& buffer = program.buffers[id];
      if (buffer.place == Program::BufferKind::Input ||
          buffer.place == Program::BufferKind::Constant)
        continue;
      const auto found = made.find(buffer.name);
      if (found != made.end() && found->second.maker == step.value) last[id] = k;
    }
  }
  std::vector<std::vector<std::uint32_t>> complete(program.steps.size());
  for (const auto& [id, step] : last) complete[step].push_back(id);
  return complete;
}

}  // namespace

std::vector<Datum> visit_reference(const Graph& graph, const std::vector<Datum>& inputs,
                                   int threads, const OnValue& on_value) {
  show_inputs(graph, inputs, on_value);
  reference::EvaluateOptions options;
  options.thread_count = threads;
  options.on_value = [&](ValueId id, const Datum& value) {
    if (value.is_tensor() && graph.constant_of(id) == nullptr)
      on_value(graph.value(id).name, in_logical_order(value.tensor(), layout_of(graph.value(id))));
  };
  return reference::evaluate(graph, inputs, options);
}

std::vector<Datum> visit_compiled(CompiledModel& model, const Graph& graph,
                                  const std::vector<Datum>& inputs, const OnValue& on_value) {
  show_inputs(graph, inputs, on_value);
  std::map<std::string, StoredValue> made;
  index_values(graph, made);
  std::vector<std::vector<std::uint32_t>> complete;
  // symbol values that it is valid for; they may change during a run
  std::vector<std::int64_t> symbols;
  Observers observers;
  observers.after_step = [&](const KernelRunner& runner, std::size_t step) {
    if (complete.empty() || symbols != runner.symbols) {
      complete = complete_behind(runner, made);
      symbols = runner.symbols;
    }
    for (const std::uint32_t id : complete[step]) {
      const std::byte* data = runner.address(id);
      if (data == nullptr) continue;
      const Program::Buffer& buffer = runner.program().buffers[id];
      Tensor tensor(element_type_of(buffer), runner.shapes[id]);
      std::copy_n(data, tensor.byte_size(), tensor.mutable_bytes().data());
      on_value(buffer.name, in_logical_order(tensor, made.at(buffer.name).layout));
    }
  };
  observers.after_operator = [&](std::size_t step, std::span<const PortValue> results) {
    if (results.size() != 1) return;
    const Datum& result = operator_datum(results[0]);
    if (result.is_tensor()) on_value(model.program().steps[step].value, result.tensor());
  };
  model.prepare(inputs);
  model.run_observed(observers);
  return model.outputs();
}

}  // namespace tenon::diagnose
