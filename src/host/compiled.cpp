#include "host/compiled.h"

#include "base/error.h"
#include "host/program_types.h"
#include "program/in_place.h"
#include "runtime/memory.h"

#include <map>

namespace tenon::inline host {
namespace {

constexpr std::uint64_t kOutputAlignment = 64, kLargePage = std::uint64_t{2} << 20;

}  // namespace

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
  return graph;
}

std::vector<std::string> names_of(const Program& program,
                                  const std::vector<std::uint32_t>& buffers) {
  std::vector<std::string> names;
  for (const std::uint32_t id : buffers) names.push_back(program.buffers[id].name);
  return names;
}

CompiledModel::CompiledModel(Program program, int thread_count) : totals_(totals_of(program)) {
  if (!program.is_kernel_only()) {
    host_model_ = std::make_shared<const HostExecutable>(std::move(program));
    host_.emplace(host_model_, thread_count);
  } else {
    model_ = std::make_shared<const Executable>(std::move(program));
    context_.emplace(model_, thread_count);
  }
}

void CompiledModel::overwrite(const std::vector<StatePorts>& ports) {
  overwritten_.clear();
  if (is_on_device()) return;
  for (const StatePorts& each : ports) {
    if (is_read_first(program(), each.input, each.output)) overwritten_.push_back(each);
  }
  if (host_) host_->overwrite(overwritten_);
}

void CompiledModel::prepare(std::vector<Datum> inputs) {
  if (inputs.size() != program().inputs.size()) {
    throw Error("the model takes another number of inputs", ErrorKind::Usage)
        .expected(program().inputs.size())
        .got(inputs.size());
  }
  if (host_) {
    given_ = std::move(inputs);
    for (const StatePorts& ports : overwritten_) {  // leaves shared data unchanged
      Tensor own = given_[ports.input].tensor();
      given_[ports.input] = Datum();
      own.mutable_bytes();
      given_[ports.input] = std::move(own);
    }
    return;
  }
  inputs_.clear();
  sources_.clear();
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Program::Buffer& expected = program().buffers[program().inputs[k]];
    inputs_.push_back(inputs[k].tensor());
    if (to_string(inputs_.back().dtype()) != expected.dtype) {
      throw Error(concat("input '", expected.name, "' has the wrong element type"),
                  ErrorKind::Usage)
          .expected(expected.dtype)
          .got(inputs_.back().dtype());
    }
    shapes.push_back(inputs_.back().shape());
  }
  inputs.clear();
  for (const StatePorts& ports : overwritten_) inputs_[ports.input].mutable_bytes();
  for (const Tensor& input : inputs_) sources_.push_back(input.bytes().data());
  context_->bind(shapes);
  place_outputs();
}

void CompiledModel::place_outputs() {
  outputs_.clear();
  targets_.clear();
  const Program& p = program();
  std::vector<std::uint64_t> sizes;
  // of outputs that reuse the memory of an input
  std::vector<const Tensor*> places(p.outputs.size(), nullptr);
  for (const StatePorts& ports : overwritten_) places[ports.output] = &inputs_[ports.input];
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < p.outputs.size(); ++k) {
    if (places[k] != nullptr) {
      sizes.push_back(0);
      continue;
    }
    sizes.push_back(p.buffers[p.outputs[k]].element_bytes);
    for (const std::int64_t extent : context_->output_shape(k))
      sizes.back() *= static_cast<std::uint64_t>(extent);
    total += (sizes.back() + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
  }
  // One block for all outputs, so that the system can use huge pages: the page faults of thousands
  // of small pages take longer than many runs.
  const auto block = std::make_shared<Memory>();
  const bool is_one_block = total >= kLargePage && block->allocate(total);
  std::uint64_t offset = 0;
  for (std::size_t k = 0; k < p.outputs.size(); ++k) {
    const Program::Buffer& buffer = p.buffers[p.outputs[k]];
    if (places[k] != nullptr) {
      outputs_.push_back(*places[k]);
      targets_.push_back(const_cast<std::byte*>(places[k]->bytes().data()));  // NOLINT: its own
      continue;
    }
    if (is_one_block) {
      std::byte* place = block->data() + offset;
      targets_.push_back(place);
      outputs_.push_back(Tensor::borrow(element_type_of(buffer), context_->output_shape(k), block,
                                        {place, sizes[k]}));
      offset += (sizes[k] + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
      continue;
    }
    try {
      outputs_.emplace_back(element_type_of(buffer), context_->output_shape(k));
    } catch (Error& error) {
      throw error.at("output '", buffer.name, "'");
    }
    targets_.push_back(outputs_.back().mutable_bytes().data());
  }
}

void CompiledModel::set_body_callback(std::function<void()> call) {
  if (host_) host_->set_body_callback(std::move(call));
}

void CompiledModel::run_prepared() {
  if (context_) {
    context_->run(sources_, targets_);
  } else {
    made_.clear();  // so that their memory can be reused
    made_ = host_->run(given_);
  }
}

void CompiledModel::run_prepared(std::vector<double>& seconds) {
  TENON_ASSERT(context_.has_value(), "the program is kernels alone");
  seconds.resize(program().steps.size());
  context_->run(sources_, targets_, watch_);
  for (const Watch::Step& step : watch_.steps())
    seconds[step.number] += static_cast<double>(step.end - step.start) * seconds_per_tick();
}

void CompiledModel::run_watched(RunEvents& events) {
  events.clear();
  events.begin = ticks();
  if (context_) {
    context_->run(sources_, targets_, watch_);
    events.end = ticks();
    events.add(watch_);
  } else {
    made_.clear();
    made_ = host_->run(given_, events);
    events.end = ticks();
  }
}

void CompiledModel::run_observed(const HostContext::Observers& observers) {
  if (context_) {
    context_->run(sources_, targets_, [&](std::size_t step) {
      if (observers.after_step) observers.after_step(context_->runner(), step);
    });
  } else {
    made_.clear();
    made_ = host_->run(given_, observers);
  }
}

double CompiledModel::replay() {
  TENON_ASSERT(is_on_device(), "the program is one list of kernels on a device");
  return context_->replay();
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
  if (host_) return made_;
  return {outputs_.begin(), outputs_.end()};
}

std::vector<Datum> CompiledModel::run(const std::vector<Datum>& inputs) {
  prepare(inputs);
  run_prepared();
  return outputs();
}

}  // namespace tenon::inline host
