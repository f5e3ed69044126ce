#pragma once

#include "runtime/port_value.h"
#include "runtime/watch.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tenon::inline runtime {

class Executable;
class KernelRunner;

/// Observers of one run.
struct Observers {
  /// Called after each kernel, before later steps overwrite its results; an exception ends the run.
  std::function<void(const KernelRunner& runner, std::size_t step)> after_step = {};
  /// Called after each host operator; its results are values of the operator (`PortValue::object`).
  std::function<void(std::size_t step, std::span<const PortValue> results)> after_operator = {};
  /// If not null, receives the times of all steps.
  RunEvents* events = nullptr;
};

/// Executes a program with host steps for one caller: operators, branches, loops, and the kernels
/// between them. Defined in `host`, so that kernel-only programs need no operators.
class HostSteps {
 public:
  virtual ~HostSteps() = default;

  /// Takes a value for each input. Outputs of states that may be overwritten take the memory of
  /// their inputs. Throws Error if an input does not match, or if the data violates an operator's
  /// conditions.
  virtual std::vector<PortValue> run(std::span<const PortValue> inputs,
                                     const Observers& observers) = 0;
  /// Sets a callback before each execution of a body, e.g. a loop iteration; an exception ends the
  /// run.
  virtual void set_body_callback(std::function<void()> call) = 0;
  /// Bytes of dynamically allocated values.
  virtual std::uint64_t pool_bytes() const = 0;
};

/// The resolved operators of a program, shared by its executors.
class HostOperators {
 public:
  virtual ~HostOperators() = default;
  /// The runner must outlive the result.
  virtual std::unique_ptr<HostSteps> make_steps(KernelRunner& runner) const = 0;
};

}  // namespace tenon::inline runtime
