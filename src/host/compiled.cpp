#include "host/compiled.h"

#include "base/error.h"
#include "host/program_types.h"

#include <algorithm>
#include <map>

namespace tenon::inline host {
Graph input_ports(const Program& program) {
  Graph graph(program.name);
  for (const std::uint32_t id : program.inputs) {
    const Program::Buffer& buffer = program.buffers[id];
    if (buffer.element_bytes == 0) {  // not a tensor, or of dynamic rank
      graph.add_input(buffer.name, parse_type(buffer.dtype));
      continue;
    }
    TensorType type;
    type.dtype = element_type_of(buffer);
    for (const Extent& extent : buffer.dims) type.dims.push_back(dim_of(extent, program));
    graph.add_input(buffer.name, type);
  }
  for (const Program::State& from : program.states) {
    Graph::State& state = graph.states.emplace_back();
    state.input = from.input;
    state.output = from.output;
    state.starts_with_zeros = from.starts_with_zeros;
    if (from.initial == kNoBuffer) continue;
    const Program::Buffer& constant = program.buffers[from.initial];
    Shape shape;
    std::size_t bytes = constant.element_bytes;
    for (const Extent& dim : constant.dims) {
      shape.push_back(dim.number());
      bytes *= static_cast<std::size_t>(dim.number());
    }
    state.initial =
        Constant(Tensor::borrow(element_type_of(constant), std::move(shape), program.constants,
                                {program.constants.get() + constant.offset, bytes}));
  }
  return graph;
}

std::vector<std::string> names_of(const Program& program,
                                  const std::vector<std::uint32_t>& buffers) {
  std::vector<std::string> names;
  for (const std::uint32_t id : buffers) names.push_back(program.buffers[id].name);
  return names;
}

CompiledModel::CompiledModel(Program program, int thread_count)
    : totals_(totals_of(program)), executor_(load_executable(std::move(program)), thread_count) {}

void CompiledModel::prepare(std::vector<Datum> inputs) {
  const Program& p = program();
  if (inputs.size() != p.inputs.size()) {
    throw Error("the model takes another number of inputs", ErrorKind::Usage)
        .expected(p.inputs.size())
        .got(inputs.size());
  }
  inputs_.clear();
  outputs_.assign(p.outputs.size(), {});
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Program::Buffer& expected = p.buffers[p.inputs[k]];
    const auto state = std::ranges::find(p.states, k, &Program::State::input);
    const bool is_tensor = inputs[k].is_tensor();
    if (is_tensor && parse_dtype(expected.dtype) &&
        to_string(inputs[k].tensor().dtype()) != expected.dtype) {
      throw Error(concat("input '", expected.name, "' has the wrong element type"),
                  ErrorKind::Usage)
          .expected(expected.dtype)
          .got(inputs[k].tensor().dtype());
    }
    inputs_.push_back(state == p.states.end() ? port_value(std::move(inputs[k])) : PortValue());
    shapes.push_back(inputs_.back().shape);
    if (state == p.states.end() || !is_tensor) continue;
    const Tensor& value = inputs[k].tensor();
    executor_.write_state(static_cast<std::size_t>(state - p.states.begin()), value.shape(),
                          value.bytes().data());
    inputs[k] = Datum();
  }
  executor_.bind(shapes);
}

void CompiledModel::run_observed(const Observers& observers) {
  for (PortValue& output : outputs_) {  // so that their memory can be used again
    output.data = nullptr;
    output.owner = output.object = nullptr;
  }
  executor_.run(inputs_, outputs_, observers);
}

void CompiledModel::run_prepared() { run_observed({}); }

void CompiledModel::run_watched(RunEvents& events) {
  events.clear();
  events.begin = ticks();
  Observers observers;
  observers.events = &events;
  run_observed(observers);
  events.end = ticks();
}

void CompiledModel::run_prepared(std::vector<double>& seconds) {
  seconds.resize(program().steps.size());
  RunEvents events;
  run_watched(events);
  for (const StepEvent& event : events.steps)
    seconds[event.step] += static_cast<double>(event.end - event.start) * seconds_per_tick();
}

InFlight CompiledModel::in_flight(std::size_t contexts) const {
  std::vector<Tensor> inputs;
  for (const PortValue& input : inputs_) inputs.push_back(operator_datum(input).tensor());
  return {executor_.model(), thread_count(), inputs, contexts};
}

std::vector<StepTime> CompiledModel::timed_steps(int run_count) {
  // Kernels in program order, followed by host steps.
  const auto& steps = program().steps;
  const auto key = [&](std::uint32_t step) {
    return std::pair(steps[step].kind != Program::StepKind::Kernel, step);
  };
  std::map<std::pair<bool, std::uint32_t>, StepTime> times;
  for (std::uint32_t k = 0; k < steps.size(); ++k) {
    static constexpr const char* kKinds[] = {"", "operators", "branch", "loop"};
    const bool is_kernel = steps[k].kind == Program::StepKind::Kernel;
    times[key(k)] = {
        steps[k].name, steps[k].value,
        is_kernel ? steps[k].candidate : kKinds[static_cast<std::size_t>(steps[k].kind)]};
  }
  RunEvents events;
  for (int k = 0; k < run_count; ++k) {
    run_watched(events);
    for (const StepEvent& event : events.steps) {
      StepTime& time = times[key(event.step)];
      time.seconds +=
          static_cast<double>(event.end - event.start - event.inner) * seconds_per_tick();
      time.flops += steps[event.step].flops;
      time.bytes += steps[event.step].bytes;
    }
  }
  std::vector<StepTime> list;
  for (auto& [place, time] : times) list.push_back(std::move(time));
  return list;
}

std::vector<Datum> CompiledModel::outputs() const {
  std::vector<Datum> values;
  for (std::size_t k = 0; k < outputs_.size(); ++k)
    values.push_back(datum_of(outputs_[k], program().buffers[program().outputs[k]]));
  return values;
}

std::vector<Datum> CompiledModel::run(const std::vector<Datum>& inputs) {
  prepare(inputs);
  run_prepared();
  return outputs();
}

}  // namespace tenon::inline host
