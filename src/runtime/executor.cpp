#include "runtime/executor.h"

#include "base/error.h"
#include "runtime/executor_run.h"
#include "runtime/processors.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace tenon::inline runtime {

ExecutorUse::ExecutorUse(std::atomic_flag& is_in_use) : is_in_use_(is_in_use) {
  if (is_in_use_.test_and_set(std::memory_order_acquire)) {
    throw Error("two threads use one context at the same time", ErrorKind::Usage)
        .hint("use one context per thread; contexts share the model");
  }
}

Executor::Executor(std::shared_ptr<const Executable> model, int thread_count) {
  const Program& p = model->program();
  if (!p.is_kernel_only() && model->operators() == nullptr) {
    throw Error("the program has steps that are no kernels", ErrorKind::Unsupported)
        .at("program '", p.name, "'");
  }
  run_ =
      std::make_unique<Run>(std::move(model), thread_count > 0 ? thread_count : usable_threads());
  if (!p.symbols.empty() || !p.states.empty() || run_->has_host_steps) return;
  Run::Shapes shapes;
  for (const std::uint32_t input : p.inputs) {
    auto& shape = shapes.emplace_back();
    for (const Extent& dim : p.buffers[input].dims) shape.push_back(dim.value({}));
  }
  bind(shapes);
}
Executor::Executor(Executor&&) noexcept = default;
Executor::~Executor() = default;

const std::shared_ptr<const Executable>& Executor::model() const { return run_->model; }
const Program& Executor::program() const { return run_->program(); }
int Executor::thread_count() const { return run_->thread_count; }
bool Executor::is_on_device() const {
  return run_->model->device() != nullptr && !run_->has_host_steps;
}

void Executor::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  if (!run_->runner) run_->open();
  if (!std::ranges::equal(run_->given, input_shapes)) {
    run_->is_bound = false;
    run_->given.assign(input_shapes.begin(), input_shapes.end());
  }
  run_->bind();
}

const std::vector<std::int64_t>& Executor::output_shape(std::size_t output) const {
  if (run_->has_host_steps) {
    throw Error("the shapes of this program's outputs depend on the data", ErrorKind::Unsupported)
        .hint("run it with outputs whose data is null: they get memory then");
  }
  return run_->runner->output_shapes.at(output);
}

void Executor::replace_constant(std::uint32_t buffer, const std::byte* data) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  TENON_ASSERT(program().buffers.at(buffer).is_weight, "only weights are replaced");
  if (is_on_device())
    throw Error("weights of a program on a device are not swapped", ErrorKind::Unsupported);
  run_->runner->replace_constant(buffer, data);
}

void Executor::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                   const Observers& observers) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  if (run_->has_host_steps) return run_->run_host(inputs, outputs, observers);
  run_->begin(inputs, outputs);
  run_->run_kernels(observers);
  run_->end();
}

void Executor::run(std::span<const PortValue> inputs, std::span<PortValue> outputs,
                   const Observers& observers) {
  const ExecutorUse use(run_->is_in_use);
  Run& run = *run_;
  run.require_idle();
  TENON_ASSERT(
      inputs.size() == program().inputs.size() && outputs.size() == program().outputs.size(),
      "a value for each input and output");
  if (!run.runner) run.open();
  const bool is_same =
      run.is_bound && std::ranges::equal(run.given, inputs, {}, {}, &PortValue::shape);
  if (!is_same) {
    run.is_bound = false;
    run.given.clear();
    for (const PortValue& input : inputs) run.given.push_back(input.shape);
  }
  run.bind();
  if (run.has_host_steps) {
    std::vector<PortValue> results = run.run_host(inputs, observers);
    std::ranges::move(results, outputs.begin());
    return;
  }
  run.place_outputs(outputs);
  run.sources.clear();
  run.targets.clear();
  for (const PortValue& input : inputs) run.sources.push_back(input.data);
  for (const PortValue& output : outputs)
    run.targets.push_back(const_cast<std::byte*>(output.data));  // NOLINT: kernels write it
  run.begin(run.sources, run.targets);
  run.run_kernels(observers);
  run.end();
  for (std::size_t k = 0; k < run.states.count(); ++k) {
    const StateValues::Value& value = run.states.value(k);
    PortValue& output = outputs[run.states.described(k).output];
    output.shape = value.shape;
    output.data = value.memory.get();
    output.owner = value.memory;
  }
}

void Executor::start(std::span<const void* const> inputs, std::span<void* const> outputs) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  if (run_->has_host_steps) {
    run_->run_host(inputs, outputs, {});
  } else {
    run_->begin(inputs, outputs);
    run_->runner->start(0);
  }
  run_->is_under_way = true;
}

void Executor::finish() {
  const ExecutorUse use(run_->is_in_use);
  if (!run_->is_under_way) throw Error("no run of the context was started", ErrorKind::Usage);
  run_->is_under_way = false;
  if (run_->has_host_steps) return;
  run_->runner->finish(0);
  run_->end();
}

void Executor::require_idle() const { run_->require_idle(); }

std::size_t Executor::find_state(std::string_view name) const { return run_->states.find(name); }
const StateValues& Executor::states() const { return run_->states; }

const StateValues::Value& Executor::state(std::size_t state) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  const StateValues::Value& value = run_->states.value(state);
  if (!value.memory) {
    Run::Shapes shapes = run_->given;
    shapes.resize(program().inputs.size());
    const bool is_zeros = run_->states.described(state).starts_with_zeros;
    run_->states.start(
        state, is_zeros ? run_->shape_of_zeros(state, shapes) : std::vector<std::int64_t>());
  }
  return value;
}

void Executor::read_state(std::size_t state, void* to) {
  run_->states.read(this->state(state), to);
}

void Executor::write_state(std::size_t state, std::vector<std::int64_t> shape, const void* data) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  run_->states.write(state, std::move(shape), data);
}

void Executor::bind_state(std::size_t state, std::vector<std::int64_t> shape,
                          std::shared_ptr<std::byte> memory) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  run_->states.bind(state, std::move(shape), std::move(memory));
}

void Executor::reset_states() {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  run_->states.reset();
}

void Executor::share_states(const Executor& from) {
  const ExecutorUse use(run_->is_in_use), use_of_other(from.run_->is_in_use);
  run_->require_idle();
  from.run_->require_idle();
  run_->states.share(from.run_->states);
}

Executor Executor::fork() const {
  Executor made(model(), thread_count());
  made.share_states(*this);
  return made;
}

void Executor::rest() {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  run_->host.reset();
  run_->runner.reset();
  run_->is_bound = false;
}

std::uint64_t Executor::arena_bytes() const {
  if (!run_->runner || !run_->is_bound) return program().arena_bytes;
  return run_->runner->arena_bytes() + (run_->host ? run_->host->pool_bytes() : 0);
}
std::uint64_t Executor::scratch_bytes() const {
  return run_->runner ? run_->runner->scratch_bytes() : 0;
}

void Executor::set_body_callback(std::function<void()> call) {
  run_->before_body = std::move(call);
  if (run_->host) run_->host->set_body_callback(run_->before_body);
}
void Executor::sample(std::uint32_t stride, std::uint32_t phase) {
  run_->watch.sample(stride, phase);
}

void Executor::call_after(std::vector<std::size_t> steps,
                          std::function<void(std::size_t step)> call) {
  run_->device().call_after(std::move(steps), std::move(call));
}
double Executor::replay() {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  return run_->device().replay();
}
std::vector<TimedCandidates> Executor::time_candidates(const std::vector<bool>& steps) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  return run_->device().time_candidates(steps);
}
double Executor::time_steps(std::size_t first, std::size_t count) {
  const ExecutorUse use(run_->is_in_use);
  run_->require_idle();
  return run_->device().time_steps(first, count);
}

const KernelRunner& Executor::runner() const { return *run_->runner; }
std::span<std::byte> Executor::arena() { return run_->runner->arena(); }

}  // namespace tenon::inline runtime
