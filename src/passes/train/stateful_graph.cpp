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

std::vector<StatePorts> StatefulGraph::ports() const {
  std::vector<StatePorts> ports;
  for (const State& state : states) ports.push_back({state.input, state.output});
  return ports;
}

std::string print(const StatefulGraph& step) {
  std::string text = print(step.graph);
  for (const State& state : step.states) {
    const std::string next = step.graph.value(step.graph.outputs()[state.output]).name;
    text += concat("# state ", print_name(state.name), ": ", state.initial.type(), ", next ",
                   print_name(next), "\n");
  }
  return text;
}

}  // namespace tenon::passes
