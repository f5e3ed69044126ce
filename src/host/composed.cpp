#include "host/composed.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "host/element_type.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "program/routine_check.h"
#include "reference/evaluate.h"
#include "runtime/processors.h"

namespace tenon {
namespace {

void require_fit(const Routine::Step& step, const Graph& graph) {
  const bool has_bodies = !step.bodies.empty();
  const bool fits = graph.inputs().size() == step.operands.size() && graph.outputs().size() == step.results.size() &&
                    (!has_bodies || (graph.node_count() == 1 && graph.node(graph.first()).bodies.size() == step.bodies.size()));
  if (fits) return;
  throw Error("the operators of a step are not what it calls").at("step '", step.name, "'").hint("compile the model again");
}

}  // namespace

// A routine with its graphs read. Steps are numbered through, bodies included.
struct ReadyRoutine {
  const Routine* routine = nullptr;
  struct Step {
    std::size_t number = 0;
    Graph graph;
    std::vector<ReadyRoutine> bodies;
  };
  std::vector<Step> steps;
};

struct ComposedModel::Parts {
  std::vector<std::shared_ptr<const Model>> models;
  ReadyRoutine routine;
  std::size_t step_count = 0;
  std::vector<const Routine::Step*> steps;  // by number

  ReadyRoutine ready(const Routine& list) {
    ReadyRoutine made;
    made.routine = &list;
    for (const Routine::Step& step : list.steps) {
      ReadyRoutine::Step& ready_step = made.steps.emplace_back();
      ready_step.number = step_count++;
      steps.push_back(&step);
      if (step.kind != Routine::Step::Kind::Operators) continue;
      ready_step.graph = parse_graph(step.graph, all_ops(), concat("step '", step.name, "' of the program"));
      require_fit(step, ready_step.graph);
      for (const Routine& body : step.bodies) ready_step.bodies.push_back(ready(body));
    }
    return made;
  }
};

ComposedModel::ComposedModel(Program program) : program_(std::move(program)), parts_(std::make_unique<Parts>()) {
  require_routine(program_);
  for (Program& part : program_.parts) parts_->models.push_back(std::make_shared<const Model>(std::move(part)));
  program_.parts.clear();
  parts_->routine = parts_->ready(program_.routine);
}
ComposedModel::~ComposedModel() = default;

const Program& ComposedModel::part(std::uint32_t number) const { return parts_->models.at(number)->program(); }
std::size_t ComposedModel::part_count() const { return parts_->models.size(); }
std::size_t ComposedModel::routine_step_count() const { return parts_->step_count; }
const Routine::Step& ComposedModel::routine_step(std::uint32_t number) const { return *parts_->steps.at(number); }

struct ComposedContext::State {
  std::shared_ptr<const ComposedModel> model;
  int thread_count = 0;
  struct Part {
    Context context;
    std::vector<Shape> shapes;  // that it is bound to
    Watch watch;
  };
  std::vector<std::optional<Part>> parts;
  // By step: what it gave the last time, kept so that its memory can be used again.
  std::vector<std::vector<Tensor>> kept;
  std::function<void()> before_body;
  std::optional<std::vector<std::int64_t>> checked;  // values of the symbols that were found to fit
  RunEvents* events = nullptr;  // of the run that is watched
  const Looks* looks = nullptr;
  std::atomic_flag is_in_use;

  void check_shapes(const std::vector<Datum>& inputs);
  const ComposedModel::Parts& ready() const { return model->parts(); }

  using Slots = std::vector<std::optional<Datum>>;
  std::vector<Datum> run(const ReadyRoutine& ready, std::vector<Datum> inputs);
  void run_part(const Routine::Step& step, std::size_t number, Slots& slots);
  void run_operators(const Routine::Step& step, const ReadyRoutine::Step& ready, Slots& slots);
  void run_scan(const Routine::Step& step, std::size_t number, Slots& slots);

  Context& bound(std::size_t part, const std::vector<Shape>& shapes);
  void run_kernels(std::size_t part, Context& context, std::span<const void* const> inputs, std::span<void* const> outputs);
  Tensor& kept_tensor(std::size_t number, std::size_t place, DType dtype, const Shape& shape);
  const Program& part_program(std::size_t part) const { return ready().models[part]->program(); }
  DType output_dtype(std::size_t part, std::size_t output) const {
    const Program& program = part_program(part);
    return element_type_of(program.buffers[program.outputs[output]]);
  }
  const Tensor& operand(const Slots& slots, const Routine::Step& step, std::size_t k) const;
};

namespace {

Datum& read_slot(std::vector<std::optional<Datum>>& slots, std::uint32_t slot, const std::string& reader) {
  if (!slots[slot]) throw Error("the program reads a value before it is made").at("step '", reader, "'");
  return *slots[slot];
}

}  // namespace

// A tensor of the step's own to write to: that of the last run unless its shape changed.
Tensor& ComposedContext::State::kept_tensor(std::size_t number, std::size_t place, DType dtype, const Shape& shape) {
  std::vector<Tensor>& tensors = kept[number];
  if (tensors.size() <= place) tensors.resize(place + 1);
  Tensor& tensor = tensors[place];
  if (tensor.dtype() != dtype || tensor.shape() != shape || tensor.bytes().data() == nullptr) tensor = Tensor(dtype, shape);
  return tensor;
}

Context& ComposedContext::State::bound(std::size_t part, const std::vector<Shape>& shapes) {
  if (!parts[part]) parts[part].emplace(Part{Context(ready().models[part], thread_count), {}, {}});
  Part& made = *parts[part];
  if (made.shapes != shapes || shapes.empty()) {
    made.shapes.clear();
    made.context.bind(shapes);
    made.shapes = shapes;
  }
  return made.context;
}

void ComposedContext::State::run_kernels(std::size_t part, Context& context, std::span<const void* const> inputs,
                                         std::span<void* const> outputs) {
  if (events != nullptr) {
    Watch& watch = parts[part]->watch;
    context.run(inputs, outputs, watch);
    events->add(watch, static_cast<std::uint32_t>(part));
  } else if (looks != nullptr && looks->behind_step) {
    context.run(inputs, outputs, [&](std::size_t step) { looks->behind_step(static_cast<std::uint32_t>(part), context, step); });
  } else {
    context.run(inputs, outputs);
  }
}

const Tensor& ComposedContext::State::operand(const Slots& slots, const Routine::Step& step, std::size_t k) const {
  const auto& datum = slots[step.operands[k]];
  if (!datum || !datum->is_tensor()) throw Error("the program reads a tensor before it is made").at("step '", step.name, "'");
  const Program& program = part_program(step.part);
  const Program::Buffer& buffer = program.buffers[program.inputs[k]];
  if (to_string(datum->tensor().dtype()) != buffer.dtype) {
    throw Error(concat("'", buffer.name, "' has the wrong element type"), ErrorKind::Usage)
        .expected(buffer.dtype)
        .got(datum->tensor().dtype());
  }
  return datum->tensor();
}

void ComposedContext::State::run_part(const Routine::Step& step, std::size_t number, Slots& slots) {
  std::vector<Shape> shapes;
  std::vector<const void*> inputs;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Tensor& tensor = operand(slots, step, k);
    shapes.push_back(tensor.shape());
    inputs.push_back(tensor.bytes().data());
  }
  Context& context = bound(step.part, shapes);
  std::vector<void*> outputs;
  for (std::size_t k = 0; k < step.results.size(); ++k) {
    outputs.push_back(kept_tensor(number, k, output_dtype(step.part, k), context.output_shape(k)).mutable_bytes().data());
  }
  run_kernels(step.part, context, inputs, outputs);
  for (std::size_t k = 0; k < step.results.size(); ++k) slots[step.results[k]] = kept[number][k];
}

void ComposedContext::State::run_operators(const Routine::Step& step, const ReadyRoutine::Step& ready_step, Slots& slots) {
  std::vector<Datum> inputs;
  for (const std::uint32_t slot : step.operands) inputs.push_back(read_slot(slots, slot, step.name));
  reference::Options options;
  options.thread_count = thread_count;
  options.before_body = before_body;
  if (!ready_step.bodies.empty()) {
    options.run_body = [&](std::size_t body, std::vector<Datum> values) {
      return run(ready_step.bodies.at(body), std::move(values));
    };
  }
  StepEvent event{kOperatorPart, static_cast<std::uint32_t>(ready_step.number)};
  const std::size_t first_inner = events == nullptr ? 0 : events->steps.size();
  event.start = event.kern = ticks();
  std::vector<Datum> results = reference::evaluate(ready_step.graph, std::move(inputs), options);
  event.end = ticks();
  if (events != nullptr) {
    for (std::size_t k = first_inner; k < events->steps.size(); ++k) {
      const StepEvent& inner = events->steps[k];
      event.inner += inner.end - inner.start - inner.inner;
    }
    event.first_piece = static_cast<std::uint32_t>(events->pieces.size());
    event.piece_count = 1;
    events->pieces.push_back({0, event.start, event.end});
    events->steps.push_back(event);
  }
  if (looks != nullptr && looks->behind_operators) looks->behind_operators(step, results);
  for (std::size_t k = 0; k < step.results.size(); ++k) slots[step.results[k]] = std::move(results.at(k));
}

// Slices lie one behind another, so that kernels read and write them where they are.
void ComposedContext::State::run_scan(const Routine::Step& step, std::size_t number, Slots& slots) {
  const std::size_t states = step.state_count, scanned = step.input_count;
  std::int64_t count = 0;
  std::vector<Shape> shapes;
  std::vector<const std::byte*> sources;
  std::vector<std::int64_t> strides(step.operands.size(), 0);  // bytes from one run to the next
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Tensor& tensor = operand(slots, step, k);
    Shape shape = tensor.shape();
    sources.push_back(tensor.bytes().data());
    if (k >= states && k < states + scanned) {
      if (shape.empty()) throw Error("scan: a scanned input has no axis").at("step '", step.name, "'");
      if (k > states && shape.front() != count) {
        throw Error("scan: scanned inputs differ in length").expected("one extent along the scanned axes").got(shape.front(), " and ", count);
      }
      count = shape.front();
      shape.erase(shape.begin());
      if (count > 0) strides[k] = static_cast<std::int64_t>(tensor.byte_size()) / count;
      if (step.input_is_reversed[k - states]) {
        sources[k] += strides[k] * (count - 1);
        strides[k] = -strides[k];
      }
    }
    shapes.push_back(std::move(shape));
  }
  Context& context = bound(step.part, shapes);
  for (std::size_t k = 0; k < states; ++k) {
    if (context.output_shape(k) == shapes[k]) continue;
    throw Error("scan: a state changes its shape").at("step '", step.name, "'");
  }
  // Two tensors for each state: one is read while the other is written.
  const std::size_t results = step.results.size();
  std::vector<std::byte*> targets(results);
  std::vector<std::int64_t> target_strides(results, 0);
  for (std::size_t k = states; k < results; ++k) {
    Shape shape = context.output_shape(k);
    shape.insert(shape.begin(), count);
    Tensor& tensor = kept_tensor(number, k, output_dtype(step.part, k), shape);
    targets[k] = tensor.mutable_bytes().data();
    if (count > 0) target_strides[k] = static_cast<std::int64_t>(tensor.byte_size()) / count;
    if (step.output_is_reversed[k - states]) {
      targets[k] += target_strides[k] * (count - 1);
      target_strides[k] = -target_strides[k];
    }
  }
  std::vector<std::byte*> others(states);
  for (std::size_t k = 0; k < states; ++k) {
    targets[k] = kept_tensor(number, k, output_dtype(step.part, k), shapes[k]).mutable_bytes().data();
    others[k] = kept_tensor(number, results + k, output_dtype(step.part, k), shapes[k]).mutable_bytes().data();
  }
  std::vector<const void*> inputs(sources.begin(), sources.end());
  std::vector<void*> outputs(targets.begin(), targets.end());
  for (std::int64_t run_number = 0; run_number < count; ++run_number) {
    if (before_body) before_body();
    run_kernels(step.part, context, inputs, outputs);
    for (std::size_t k = 0; k < states; ++k) {
      inputs[k] = outputs[k];
      std::swap(targets[k], others[k]);
      outputs[k] = targets[k];
    }
    for (std::size_t k = states; k < states + scanned; ++k) inputs[k] = static_cast<const std::byte*>(inputs[k]) + strides[k];
    for (std::size_t k = states; k < results; ++k) outputs[k] = static_cast<std::byte*>(outputs[k]) + target_strides[k];
  }
  for (std::size_t k = 0; k < results; ++k) {
    if (k < states && count == 0) {
      slots[step.results[k]] = slots[step.operands[k]];
    } else {
      const bool is_other = k < states && count % 2 == 0;
      slots[step.results[k]] = kept[number][is_other ? results + k : k];
    }
  }
}

// What all of the program takes for granted; parts check what they are given themselves.
void ComposedContext::State::check_shapes(const std::vector<Datum>& inputs) {
  const Program& program = model->program();
  if (program.checks.empty()) return;
  std::vector<std::int64_t> symbols;
  for (const Program::Symbol& symbol : program.symbols) {
    const Program::Buffer& input = program.buffers[program.inputs[symbol.input]];
    const bool is_given = symbol.input < inputs.size() && inputs[symbol.input].is_tensor();
    if (!is_given || inputs[symbol.input].tensor().shape().size() != input.dims.size()) {
      throw Error(concat("input '", input.name, "' has the wrong rank"), ErrorKind::Usage)
          .expected(input.dims.size(), " axes");
    }
    symbols.push_back(inputs[symbol.input].tensor().shape()[symbol.axis]);
  }
  if (checked == symbols) return;
  require_checks(program.checks, symbols);
  checked = std::move(symbols);
}

std::vector<Datum> ComposedContext::State::run(const ReadyRoutine& ready_routine, std::vector<Datum> inputs) {
  const Routine& routine = *ready_routine.routine;
  if (inputs.size() != routine.inputs.size()) {
    throw Error("wrong number of inputs", ErrorKind::Usage).expected(routine.inputs.size()).got(inputs.size());
  }
  Slots slots(routine.slot_count);
  for (std::size_t k = 0; k < inputs.size(); ++k) slots[routine.inputs[k]] = std::move(inputs[k]);
  for (std::size_t k = 0; k < routine.steps.size(); ++k) {
    const Routine::Step& step = routine.steps[k];
    const ReadyRoutine::Step& ready_step = ready_routine.steps[k];
    switch (step.kind) {
      case Routine::Step::Kind::Part: run_part(step, ready_step.number, slots); break;
      case Routine::Step::Kind::Operators: run_operators(step, ready_step, slots); break;
      case Routine::Step::Kind::Scan: run_scan(step, ready_step.number, slots); break;
    }
  }
  std::vector<Datum> outputs;
  for (const std::uint32_t slot : routine.outputs) outputs.push_back(read_slot(slots, slot, "the end"));
  return outputs;
}

ComposedContext::ComposedContext(std::shared_ptr<const ComposedModel> model, int thread_count)
    : state_(std::make_unique<State>()) {
  state_->model = std::move(model);
  state_->thread_count = thread_count > 0 ? thread_count : usable_threads();
  state_->parts.resize(state_->ready().models.size());
  state_->kept.resize(state_->ready().step_count);
}
ComposedContext::ComposedContext(ComposedContext&&) noexcept = default;
ComposedContext::~ComposedContext() = default;

std::vector<Datum> ComposedContext::run(const std::vector<Datum>& inputs) {
  const ContextUse use(state_->is_in_use);
  state_->check_shapes(inputs);
  return state_->run(state_->ready().routine, inputs);
}

std::vector<Datum> ComposedContext::run(const std::vector<Datum>& inputs, RunEvents& events) {
  const ContextUse use(state_->is_in_use);
  struct Watched {  // also if the run ends in an error
    Watched(State& watched, RunEvents* events) : state(watched) { state.events = events; }
    ~Watched() { state.events = nullptr; }
    State& state;
  } const watched(*state_, &events);
  state_->check_shapes(inputs);
  return state_->run(state_->ready().routine, inputs);
}

std::vector<Datum> ComposedContext::run(const std::vector<Datum>& inputs, const Looks& looks) {
  const ContextUse use(state_->is_in_use);
  struct Looked {
    Looked(State& looked, const Looks* looks) : state(looked) { state.looks = looks; }
    ~Looked() { state.looks = nullptr; }
    State& state;
  } const looked(*state_, &looks);
  state_->check_shapes(inputs);
  return state_->run(state_->ready().routine, inputs);
}

const Context* ComposedContext::part_context(std::uint32_t part) const {
  const auto& made = state_->parts.at(part);
  return made ? &made->context : nullptr;
}

Context* ComposedContext::part_context(std::uint32_t part) {
  auto& made = state_->parts.at(part);
  return made ? &made->context : nullptr;
}

void ComposedContext::before_bodies(std::function<void()> call) { state_->before_body = std::move(call); }

int ComposedContext::thread_count() const { return state_->thread_count; }

std::uint64_t ComposedContext::arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : state_->parts) bytes += part ? part->context.arena_bytes() : 0;
  return bytes;
}

std::uint64_t ComposedContext::scratch_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : state_->parts) bytes += part ? part->context.scratch_bytes() : 0;
  return bytes;
}

}  // namespace tenon
