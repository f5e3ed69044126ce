#pragma once

#include "host/executable.h"
#include "ir/state_ports.h"
#include "ops/evaluation.h"
#include "program/program.h"
#include "runtime/kernel_runner.h"

#include <functional>
#include <memory>
#include <vector>

namespace tenon {

/// What one caller needs to run a program whatever its steps are: memory for its values. One thread
/// at a time uses a context.
class HostContext {
 public:
  /// `thread_count` 0: as many as the process may use. Results do not depend on it.
  HostContext(std::shared_ptr<const HostExecutable> model, int thread_count);
  HostContext(HostContext&&) noexcept;
  ~HostContext();

  /// Throws Error if an input does not fit, or if the data breaks an op's rules.
  std::vector<Datum> run(const std::vector<Datum>& inputs);
  /// From then on these outputs take the memory of these inputs, which a run then changes: only
  /// where whoever writes them allows it and nobody reads the inputs later.
  void overwrite(std::vector<StatePorts> ports);
  /// Called before each run of a body, such as a trip of a loop; what it throws ends the run.
  void before_bodies(std::function<void()> call);
  /// The same, and adds what was seen of each step.
  std::vector<Datum> run(const std::vector<Datum>& inputs, RunEvents& events);
  /// The same, and looks at what steps made: behind each kernel, and behind each operator.
  struct Looks {
    std::function<void(const KernelRunner& runner, std::size_t step)> behind_step;
    std::function<void(const Program::Step& step, const std::vector<Datum>& results)>
        behind_operator;
  };
  std::vector<Datum> run(const std::vector<Datum>& inputs, const Looks& looks);

  const KernelRunner& runner() const;
  KernelRunner& runner();
  int thread_count() const;
  /// Bytes of the arena and of what the run sized, and of kernels' scratch.
  std::uint64_t arena_bytes() const;
  std::uint64_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
