#include "driver/values/visit.h"

#include "driver/values/plain_order.h"
#include "host/element_type.h"
#include "ops/fused_groups.h"
#include "reference/evaluate.h"

#include <map>
#include <set>

namespace tenon {
namespace {

void show_inputs(const Graph& graph, const std::vector<Datum>& inputs, const OnValue& on_value) {
  for (std::size_t k = 0; k < graph.inputs().size() && k < inputs.size(); ++k) {
    const Value& value = graph.value(graph.inputs()[k]);
    if (inputs[k].is_tensor())
      on_value(value.name,
               in_plain_order(inputs[k].tensor(),
                              value.type.is_tensor() ? value.type.tensor().layout : Layout()));
  }
}

Layout layout_of(const Value& value) {
  return value.type.is_tensor() ? value.type.tensor().layout : Layout();
}

// A value that steps may store, with the node that makes it.
struct Made {
  Layout layout;
  std::string maker;  // its first result
};

void index_values(const Graph& graph, std::map<std::string, Made>& made) {
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    std::string maker;
    for (const ValueId result : node.results) {
      if (!result || graph.constant_of(result) != nullptr) continue;
      if (maker.empty()) maker = graph.value(result).name;
      made.try_emplace(graph.value(result).name, Made{layout_of(graph.value(result)), maker});
    }
    if (is_fused_group(graph, id)) continue;
    for (const Graph& body : node.bodies) index_values(body, made);
  }
}

// For each step of a part, the buffers that are complete behind it: of those that its node makes,
// those that no later step of the node stores to.
std::vector<std::vector<std::uint32_t>> complete_behind(const Program& part, const Context& context,
                                                        const std::map<std::string, Made>& made) {
  const auto symbols = context.symbol_values();
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t k = 0; k < part.steps.size(); ++k) {
    const Program::Step& step = part.steps[k];
    bool runs = true;
    for (const Program::Guard& guard : step.when)
      runs = runs && symbols[guard.symbol] >= guard.lo && symbols[guard.symbol] <= guard.hi;
    if (!runs) continue;
    for (const std::uint32_t id : step.buffers) {
      const Program::Buffer& buffer = part.buffers[id];
      if (buffer.place != Program::Place::Arena && buffer.place != Program::Place::Output) continue;
      const auto found = made.find(buffer.name);
      if (found != made.end() && found->second.maker == step.name) last[id] = k;
    }
  }
  std::vector<std::vector<std::uint32_t>> complete(part.steps.size());
  for (const auto& [id, step] : last) complete[step].push_back(id);
  return complete;
}

}  // namespace

std::vector<Datum> visit_reference(const Graph& graph, const std::vector<Datum>& inputs,
                                   int threads, const OnValue& on_value) {
  show_inputs(graph, inputs, on_value);
  reference::Options options;
  options.thread_count = threads;
  options.on_value = [&](ValueId id, const Datum& value) {
    if (value.is_tensor() && graph.constant_of(id) == nullptr)
      on_value(graph.value(id).name, in_plain_order(value.tensor(), layout_of(graph.value(id))));
  };
  return reference::evaluate(graph, inputs, options);
}

std::vector<Datum> visit_compiled(CompiledModel& model, const Graph& graph,
                                  const std::vector<Datum>& inputs, const OnValue& on_value) {
  show_inputs(graph, inputs, on_value);
  std::map<std::string, Made> made;
  index_values(graph, made);
  std::map<std::uint32_t, std::vector<std::vector<std::uint32_t>>> complete;
  ComposedContext::Looks looks;
  looks.behind_step = [&](std::uint32_t part, const Context& context, std::size_t step) {
    const Program& program = model.part(part);
    // Shapes may be bound anew from run to run of a part: at its first step it is asked again.
    if (step == 0 || !complete.contains(part))
      complete[part] = complete_behind(program, context, made);
    for (const std::uint32_t id : complete[part][step]) {
      const Context::BoundBuffer bound = context.buffer(id);
      if (bound.data == nullptr) continue;
      const Program::Buffer& buffer = program.buffers[id];
      Tensor tensor(element_type_of(buffer), Shape(bound.shape.begin(), bound.shape.end()));
      std::copy_n(bound.data, std::min<std::size_t>(bound.bytes, tensor.byte_size()),
                  tensor.mutable_bytes().data());
      on_value(buffer.name, in_plain_order(tensor, made.at(buffer.name).layout));
    }
  };
  looks.behind_operators = [&](const Routine::Step& step, const std::vector<Datum>& results) {
    if (results.size() == 1 && results[0].is_tensor()) on_value(step.name, results[0].tensor());
  };
  model.prepare(inputs);
  model.run_looking(looks);
  return model.outputs();
}

}  // namespace tenon
