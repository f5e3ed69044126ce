#include "passes/train/stateful_graph.h"

#include "base/error.h"
#include "ir/text.h"

namespace tenon::passes {
namespace {

std::vector<std::size_t> others(std::size_t count, const std::vector<State>& states,
                                std::size_t State::*position) {
  std::vector<char> is_state(count, 0);
  for (const State& state : states) is_state[state.*position] = 1;
  std::vector<std::size_t> rest;
  for (std::size_t k = 0; k < count; ++k) {
    if (!is_state[k]) rest.push_back(k);
  }
  return rest;
}

}  // namespace

std::vector<std::size_t> StatefulGraph::data_inputs() const {
  return others(graph.inputs().size(), states, &State::input);
}

std::vector<std::size_t> StatefulGraph::data_outputs() const {
  return others(graph.outputs().size(), states, &State::output);
}

void declare_states(StatefulGraph& step, bool may_overwrite) {
  if (step.states.empty()) return;  // a graph may declare its own
  step.graph.states.clear();
  for (const State& state : step.states)
    step.graph.states.push_back({state.input, state.output, {}, false, may_overwrite});
}

std::string print(const StatefulGraph& step) {
  // Checkpoints carry a hash of this text, which is the same before and after `declare_states`.
  Graph graph = step.graph;
  graph.states.clear();
  std::string text = print(graph);
  for (const State& state : step.states) {
    const std::string next = step.graph.value(step.graph.outputs()[state.output]).name;
    text += concat("# state ", print_name(state.name), ": ", state.initial.type(), ", next ",
                   print_name(next), "\n");
  }
  return text;
}

}  // namespace tenon::passes
