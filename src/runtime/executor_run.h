#pragma once

#include "runtime/executor.h"
#include "runtime/kernel_runner.h"
#include "runtime/memory.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tenon::inline runtime {

/// Memory, bound shapes and states of an executor. Its functions expect that no run is in progress.
struct Executor::Run {
  using Shapes = std::vector<std::vector<std::int64_t>>;

  Run(std::shared_ptr<const Executable> shared, int count)
      : model(std::move(shared)),
        thread_count(count),
        has_host_steps(!model->program().is_kernel_only()),
        states(model),
        is_state_output(model->program().outputs.size(), false) {
    for (const Program::State& state : program().states) is_state_output[state.output] = true;
    open();
  }

  const std::shared_ptr<const Executable> model;
  const int thread_count;
  const bool has_host_steps;
  std::optional<KernelRunner> runner;
  std::unique_ptr<HostSteps> host;  // refers to the runner
  StateValues states;
  std::vector<bool> is_state_output;
  Shapes given, bound;  // shapes of the inputs; `bound`: with those of states
  bool is_bound = false;
  Watch watch;
  std::function<void()> before_body;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  std::shared_ptr<Memory> outputs;  // of outputs without memory of the caller
  std::atomic_flag is_in_use;
  bool is_under_way = false;  // a run was started; accessed by the holder of the executor

  const Program& program() const { return model->program(); }
  DeviceContext& device() {
    TENON_ASSERT(runner && runner->device() != nullptr && is_bound, "shapes are bound on a device");
    return *runner->device();
  }

  void open() {
    runner.emplace(model, thread_count);
    if (!has_host_steps) return;
    host = model->operators()->make_steps(*runner);
    if (before_body) host->set_body_callback(before_body);
  }
  void require_idle() const {
    if (!is_under_way) return;
    throw Error("a run of the context is in progress", ErrorKind::Usage)
        .hint("finish it first, or take another context");
  }

  std::vector<std::int64_t> shape_of_zeros(std::size_t state, const Shapes& shapes) const;
  bool fits_states() const;
  void bind();
  void begin(std::span<const void* const> inputs, std::span<void* const> outputs);
  void end();
  void run_kernels(const Observers& observers);
  std::vector<PortValue> run_host(std::span<const PortValue> inputs, const Observers& observers);
  void run_host(std::span<const void* const> inputs, std::span<void* const> outputs,
                const Observers& observers);
  void place_outputs(std::span<PortValue> outputs);
};

}  // namespace tenon::inline runtime
