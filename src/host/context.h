#pragma once

#include "host/executable.h"
#include "ir/state_ports.h"
#include "ops/definition/evaluation.h"
#include "program/program.h"
#include "runtime/kernel_runner.h"

#include <functional>
#include <memory>
#include <vector>

namespace tenon::inline host {

/// Execution state of one caller for any program, including host steps. A context is used by one
/// thread at a time.
class HostContext {
 public:
  /// `thread_count` 0 uses all available threads. Results do not depend on it.
  HostContext(std::shared_ptr<const HostExecutable> model, int thread_count);
  HostContext(HostContext&&) noexcept;
  ~HostContext();

  /// Throws Error if an input does not match, or if the data violates an operator's conditions.
  std::vector<Datum> run(const std::vector<Datum>& inputs);
  /// Lets outputs overwrite inputs in place from the next run on. The writing step must allow it,
  /// and no later step may read the input.
  void overwrite(std::vector<StatePorts> ports);
  /// Sets a callback before each execution of a body, e.g. a loop iteration; an exception ends the
  /// run.
  void set_body_callback(std::function<void()> call);
  /// Runs once and appends the events of each step.
  std::vector<Datum> run(const std::vector<Datum>& inputs, RunEvents& events);
  /// Runs once with observers, called after each kernel and after each host operator.
  struct Observers {
    std::function<void(const KernelRunner& runner, std::size_t step)> after_step;
    std::function<void(const Program::Step& step, const std::vector<Datum>& results)>
        after_operator;
  };
  std::vector<Datum> run(const std::vector<Datum>& inputs, const Observers& observers);

  const KernelRunner& runner() const;
  KernelRunner& runner();
  int thread_count() const;
  /// Bytes of the arena plus dynamically allocated values, and of kernels' scratch.
  std::uint64_t arena_bytes() const;
  std::uint64_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::inline host
